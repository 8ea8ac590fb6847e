// All layouts of a tensor on a small mesh, for exhaustive and sampled tests.
#pragma once

#include <vector>

#include "ir/layout/layout.h"

namespace weft::testing {

// Every distribution of `axes` over the dimensions (in any order inside a dimension), over "partial" if asked, and
// over "replicated". Layouts that do not divide the shape are left out; equal meanings appear once.
inline void placeAxes(const AxisList& axes, size_t next, Layout layout, bool partial, std::vector<Layout>& out) {
  if (next == axes.size()) {
    out.push_back(layout.canonical());
    return;
  }
  placeAxes(axes, next + 1, layout, partial, out);
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    for (size_t at = 0; at <= layout.dim(d).size(); ++at) {
      Layout more = layout;
      AxisList dim = layout.dim(d);
      dim.insert(dim.begin() + static_cast<int64_t>(at), axes[next]);
      more.setDim(d, dim);
      placeAxes(axes, next + 1, more, partial, out);
    }
  }
  if (partial) {
    Layout more = layout;
    std::vector<Partial> terms = layout.partial();
    terms.push_back({axes[next], ReduceKind::kSum});
    more.setPartial(terms);
    placeAxes(axes, next + 1, more, partial, out);
  }
}

// Layouts built from each of several ways to cut the line.
inline std::vector<Layout> layoutsOf(const Mesh& mesh, const Shape& shape, const std::vector<AxisList>& cuts,
                                     bool partial) {
  std::vector<Layout> all;
  for (const AxisList& axes : cuts) {
    placeAxes(axes, 0, Layout(shape.size()), partial, all);
  }
  std::vector<Layout> result;
  for (const Layout& layout : all) {
    bool known = false;
    for (const Layout& other : result) {
      known = known || other == layout;
    }
    if (!known && layout.check(shape, mesh).ok()) {
      result.push_back(layout);
    }
  }
  return result;
}

// The ways to cut the line of `ranks` into the given sizes, major first.
inline AxisList cutLine(const std::vector<int64_t>& sizes) {
  AxisList axes;
  int64_t pre = 1;
  for (int64_t size : sizes) {
    axes.push_back({AxisKind::kSpace, pre, size});
    pre *= size;
  }
  return axes;
}

}  // namespace weft::testing
