#include "report/picture/learning_curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace autograph {
namespace {

constexpr double kWidth = 420, kHeight = 300;  // of a panel
constexpr double kLeft = 58, kRight = 18, kTop = 34, kBottom = 44;
constexpr std::array<std::string_view, 4> kColours{"#1f6feb", "#d9480f", "#2b8a3e", "#862e9c"};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

// The next of 1, 2, 5, 10, 20... that is not less.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// One axis: from numbers to places, with about `ticks` round numbers.
struct Axis {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  double step = 1;

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }

  void make_round(int ticks) {
    if (low > high) low = 0, high = 1;
    if (high - low <= 1e-12 * std::max(1.0, std::fabs(high))) low -= 0.5, high += 0.5;
    step = round_step((high - low) / ticks);
    low = std::floor(low / step + 1e-9) * step;
    high = std::ceil(high / step - 1e-9) * step;
  }

  double place(double value, double from, double to) const { return from + (value - low) / (high - low) * (to - from); }
};

class PanelPicture {
 public:
  PanelPicture(const CurvePanel& panel, double left) : panel_(panel), left_(left) {
    for (const Curve& curve : panel.curves) {
      for (const auto& [px, py] : curve.points) {
        if (!std::isfinite(px) || !std::isfinite(py)) continue;
        x_.include(px);
        y_.include(py);
      }
    }
    x_.make_round(6);
    y_.make_round(5);
  }

  std::string draw() {
    text(left_ + kLeft, 20, "start", panel_.title, "font-weight=\"bold\" ");
    draw_axes();
    size_t number = 0;
    for (const Curve& curve : panel_.curves) {
      if (!curve.points.empty()) draw_curve(curve, number++);
    }
    return std::move(out_);
  }

 private:
  double x_of(double value) const { return x_.place(value, left_ + kLeft, left_ + kWidth - kRight); }
  double y_of(double value) const { return y_.place(value, kHeight - kBottom, kTop); }

  void text(double x, double y, std::string_view anchor, std::string_view what, std::string_view style = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style,
                        escaped(what));
  }

  void line(double x1, double y1, double x2, double y2, std::string_view colour) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
                        y2, colour);
  }

  void draw_axes() {
    const double right = left_ + kWidth - kRight, bottom = kHeight - kBottom;
    for (int k = 0; y_.low + k * y_.step <= y_.high + 1e-9 * y_.step; ++k) {
      const double value = y_.low + k * y_.step, y = y_of(value);
      line(left_ + kLeft, y, right, y, "#ddd");
      text(left_ + kLeft - 6, y + 4, "end", fmt::format("{:.6g}", std::fabs(value) < 1e-9 * y_.step ? 0 : value));
    }
    for (int k = 0; x_.low + k * x_.step <= x_.high + 1e-9 * x_.step; ++k) {
      const double value = x_.low + k * x_.step;
      text(x_of(value), bottom + 16, "middle", fmt::format("{:.6g}", value));
    }
    line(left_ + kLeft, bottom, right, bottom, "#444");
    text((left_ + kLeft + right) / 2, kHeight - 8, "middle", panel_.x_label);
  }

  void draw_curve(const Curve& curve, size_t number) {
    const std::string_view colour = kColours[number % kColours.size()];
    std::string path;
    bool is_broken = true;
    for (const auto& [px, py] : curve.points) {
      if (!std::isfinite(px) || !std::isfinite(py)) {
        is_broken = true;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f} ", is_broken ? "M" : "L", x_of(px), y_of(py));
      is_broken = false;
      if (curve.points.size() <= 60) {
        out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\" fill=\"{}\"/>\n", x_of(px), y_of(py), colour);
      }
    }
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n", path, colour);
    text(left_ + kWidth - kRight, 20 + 13 * static_cast<double>(number), "end",
         fmt::format("{} {:.4g}", curve.name, curve.points.back().second), fmt::format("fill=\"{}\" ", colour));
  }

  const CurvePanel& panel_;
  double left_;
  Axis x_;
  Axis y_;
  std::string out_;
};

}  // namespace

std::string learning_curves_svg(const std::vector<CurvePanel>& panels) {
  const double width = kWidth * static_cast<double>(std::max<size_t>(panels.size(), 1));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      width, kHeight);
  for (size_t k = 0; k < panels.size(); ++k) svg += PanelPicture(panels[k], kWidth * static_cast<double>(k)).draw();
  return svg + "</svg>\n";
}

std::string learning_curves_page(std::string_view title, const std::vector<CurvePanel>& panels,
                                 const std::vector<std::vector<std::string>>& table, bool goes_on) {
  std::string rows;
  for (size_t r = 0; r < table.size(); ++r) {
    const std::string_view cell = r == 0 ? "th" : "td";
    rows += "<tr>";
    for (const std::string& text : table[r]) rows += fmt::format("<{0}>{1}</{0}>", cell, escaped(text));
    rows += "</tr>\n";
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">{3}"
      "<title>{0}</title>\n<style>body{{font:14px sans-serif;margin:1.5em}}svg{{max-width:100%;height:auto}}"
      "table{{border-collapse:collapse;margin-top:1em}}th,td{{text-align:right;padding:.2em .8em;"
      "border-bottom:1px solid #ddd}}</style></head>\n<body><h1>{0}</h1>\n{1}\n<table>\n{2}</table></body></html>\n",
      escaped(title), learning_curves_svg(panels), rows, goes_on ? "<meta http-equiv=\"refresh\" content=\"10\">" : "");
}

}  // namespace autograph
