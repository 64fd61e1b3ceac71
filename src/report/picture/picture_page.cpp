// The HTML page around a picture: a few lines of script move and zoom the SVG by its viewBox and find nodes by name.
#include <string>

#include "base/printable.h"
#include "report/picture/graph_picture.h"

namespace autograph {
namespace {

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

constexpr const char* kStyle = R"html(<style>
html, body { margin: 0; height: 100%; overflow: hidden; font-family: Helvetica, Arial, sans-serif; }
header { position: fixed; top: 0; left: 0; right: 0; padding: 8px 12px; background: #fffffff0;
         border-bottom: 1px solid #ccc; display: flex; gap: 16px; align-items: center; }
main { position: absolute; inset: 44px 0 0 0; }
main svg { width: 100%; height: 100%; cursor: grab; }
.hit > path, .hit > polygon, .hit > ellipse { stroke: #d02020; stroke-width: 4; }
</style>
)html";

constexpr const char* kScript = R"html(<script>
const svg = document.querySelector("main svg"), box = svg.viewBox.baseVal;
const whole = { x: box.x, y: box.y, width: box.width, height: box.height };
const scale = () => Math.max(box.width / svg.clientWidth, box.height / svg.clientHeight);
svg.addEventListener("wheel", event => {
  event.preventDefault();
  const factor = Math.exp(event.deltaY * 0.0015), edge = svg.getBoundingClientRect();
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  box.x = point.x - (point.x - box.x) * factor;
  box.y = point.y - (point.y - box.y) * factor;
  box.width *= factor;
  box.height *= factor;
}, { passive: false });
let drag = null;
svg.addEventListener("pointerdown", event => { drag = event; svg.setPointerCapture(event.pointerId); });
svg.addEventListener("pointerup", () => { drag = null; });
svg.addEventListener("pointermove", event => {
  if (!drag) return;
  box.x -= (event.clientX - drag.clientX) * scale();
  box.y -= (event.clientY - drag.clientY) * scale();
  drag = event;
});
document.querySelector("#whole").addEventListener("click", () => Object.assign(box, whole));
document.querySelector("#find").addEventListener("input", event => {
  const text = event.target.value.toLowerCase();
  let hits = 0;
  for (const node of svg.querySelectorAll("g.node")) {
    const hit = text !== "" && node.textContent.toLowerCase().includes(text);
    node.classList.toggle("hit", hit);
    if (hit && ++hits === 1) {
      const place = node.getBBox(), graph = svg.querySelector("g.graph");
      const middle = new DOMPoint(place.x + place.width / 2, place.y + place.height / 2)
        .matrixTransform(graph.transform.baseVal.consolidate().matrix);
      box.x = middle.x - box.width / 2;
      box.y = middle.y - box.height / 2;
    }
  }
  document.querySelector("#hits").textContent = text === "" ? "" : hits + " found";
});
</script>
)html";

}  // namespace

std::string picture_page(std::string_view title, std::string_view svg) {
  // graphviz writes an XML prolog before the element, which HTML does not take.
  const size_t begin = svg.find("<svg");
  const std::string_view element = svg.substr(begin == std::string_view::npos ? svg.size() : begin);
  const std::string name = html_escaped(title);
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + name + "</title>\n" + kStyle +
         "</head><body>\n<header><b>" + name +
         "</b><input id=\"find\" placeholder=\"find a node\"><span id=\"hits\"></span>"
         "<button id=\"whole\">whole picture</button></header>\n<main>\n" +
         std::string(element) + "</main>\n" + kScript + "</body></html>\n";
}

}  // namespace autograph
