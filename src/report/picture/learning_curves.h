// Curves of numbers over steps or epochs as an SVG picture.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace autograph {

/// One line. Points that are no numbers leave a gap.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points = {};
};

/// One set of axes.
struct CurvePanel {
  std::string title;
  std::string x_label;
  std::vector<Curve> curves;  ///< Those without points are left out.
};

/// The panels side by side: axes with round numbers, a legend, the last value of each curve. A complete SVG document.
std::string learning_curves_svg(const std::vector<CurvePanel>& panels);

/// A page that needs nothing else: the panels and a table under them, whose first row has the headings. While a
/// run goes on an open page is read again every ten seconds, so that it follows it.
std::string learning_curves_page(std::string_view title, const std::vector<CurvePanel>& panels,
                                 const std::vector<std::vector<std::string>>& table, bool goes_on);

}  // namespace autograph
