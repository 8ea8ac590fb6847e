#include "ir/layout/across.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace weft {
namespace {

int64_t elementsOf(const Shape& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    elements *= size;
  }
  return elements;
}

// What two ranks' slices have in common; nothing if they do not meet.
std::optional<TransferBox> common(const Slice& source, const Slice& target) {
  TransferBox box;
  for (size_t d = 0; d < source.offset.size(); ++d) {
    const int64_t begin = std::max(source.offset[d], target.offset[d]);
    const int64_t end = std::min(source.offset[d] + source.size[d], target.offset[d] + target.size[d]);
    if (begin >= end) {
      return std::nullopt;
    }
    box.sourceOffset.push_back(begin - source.offset[d]);
    box.targetOffset.push_back(begin - target.offset[d]);
    box.size.push_back(end - begin);
  }
  return box;
}

// The axis of `to` that has the name of `axis`.
std::optional<Axis> namesake(const Axis& axis, const Mesh& from, const Mesh& to) {
  if (axis.kind == AxisKind::kTime) {
    return axis;
  }
  for (const NamedAxis& named : from.axes()) {
    for (const NamedAxis& other : to.axes()) {
      if (named.axis == axis && named.name == other.name) {
        return other.axis;
      }
    }
  }
  if (axis.pre == 1 && axis.size == from.ranks()) {
    return Axis{AxisKind::kSpace, 1, to.ranks()};
  }
  return std::nullopt;
}

}  // namespace

std::vector<TransferBox> boxesAcross(const Shape& shape, const Placed& from, const Placed& to) {
  std::map<Shape, std::vector<int64_t>> holders;  // ranks by the offset of what they have
  for (int64_t rank = 0; rank < from.mesh.ranks(); ++rank) {
    holders[from.layout.slice(shape, from.mesh, rank).offset].push_back(rank);
  }
  std::vector<int64_t> sent(from.mesh.ranks(), 0);  // elements
  std::vector<TransferBox> boxes;
  for (int64_t target = 0; target < to.mesh.ranks(); ++target) {
    const Slice wanted = to.layout.slice(shape, to.mesh, target);
    for (const auto& [offset, ranks] : holders) {
      std::optional<TransferBox> box = common(from.layout.slice(shape, from.mesh, ranks[0]), wanted);
      if (!box) {
        continue;
      }
      // Distance of the places i / n of the two ranks on their meshes, times both numbers of ranks.
      const auto distance = [&](int64_t rank) { return std::abs(rank * to.mesh.ranks() - target * from.mesh.ranks()); };
      box->target = target;
      box->source = *std::min_element(ranks.begin(), ranks.end(), [&](int64_t a, int64_t b) {
        return std::make_tuple(sent[a], distance(a), a) < std::make_tuple(sent[b], distance(b), b);
      });
      sent[box->source] += elementsOf(box->size);
      boxes.push_back(*std::move(box));
    }
  }
  std::sort(boxes.begin(), boxes.end(), [](const TransferBox& a, const TransferBox& b) {
    return std::make_pair(a.target, a.source) < std::make_pair(b.target, b.source);
  });
  return boxes;
}

Layout translated(const Layout& layout, const Mesh& from, const Mesh& to) {
  Layout result(layout.dimensions());
  for (size_t d = 0; d < layout.dimensions(); ++d) {
    AxisList axes;
    for (const Axis& axis : layout.dim(d)) {
      const std::optional<Axis> other = namesake(axis, from, to);
      if (!other) {
        break;
      }
      if (other->size > 1) {
        axes.push_back(*other);
      }
    }
    result.setDim(d, axes);
  }
  return result;
}

}  // namespace weft
