// Executes a reshard plan on real numbers, one tensor per rank, by the words of reshard.h; shares no code with the
// planner. Every element of the global tensor has its own number, so a misplaced element is seen. Partial values are
// random terms whose reduction is that number.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/layout/reshard.h"

namespace weft::testing {

struct Tensor {
  Shape shape;
  std::vector<int64_t> data;
};

inline int64_t countOf(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    count *= size;
  }
  return count;
}

// Calls f(index) for all indices of a shape, row-major.
inline void forEachIndex(const Shape& shape, const std::function<void(const Shape&)>& f) {
  Shape index(shape.size(), 0);
  for (int64_t i = 0; i < countOf(shape); ++i) {
    f(index);
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];) {
      index[d] = 0;
    }
  }
}

inline int64_t flatten(const Shape& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    flat = flat * shape[d] + index[d];
  }
  return flat;
}

// The block of `size` at `offset`.
inline Tensor blockOf(const Tensor& tensor, const Shape& offset, const Shape& size) {
  Tensor out{size, {}};
  forEachIndex(size, [&](Shape index) {
    for (size_t d = 0; d < index.size(); ++d) {
      index[d] += offset[d];
    }
    out.data.push_back(tensor.data[flatten(index, tensor.shape)]);
  });
  return out;
}

inline Tensor partAlong(const Tensor& tensor, int64_t dim, int64_t part, int64_t parts) {
  Shape size = tensor.shape;
  size[dim] /= parts;
  Shape offset(size.size(), 0);
  offset[dim] = part * size[dim];
  return blockOf(tensor, offset, size);
}

inline Tensor joinAlong(const std::vector<Tensor>& tensors, int64_t dim) {
  Tensor out{tensors[0].shape, {}};
  int64_t each = out.shape[dim];
  out.shape[dim] *= static_cast<int64_t>(tensors.size());
  forEachIndex(out.shape, [&](Shape index) {
    const Tensor& from = tensors[index[dim] / each];
    index[dim] %= each;
    out.data.push_back(from.data[flatten(index, from.shape)]);
  });
  return out;
}

inline Tensor reduceAll(const std::vector<Tensor>& tensors, ReduceKind kind) {
  Tensor out = tensors[0];
  for (size_t t = 1; t < tensors.size(); ++t) {
    for (size_t i = 0; i < out.data.size(); ++i) {
      int64_t a = out.data[i];
      int64_t b = tensors[t].data[i];
      out.data[i] = kind == ReduceKind::kSum ? a + b : kind == ReduceKind::kMax ? std::max(a, b) : std::min(a, b);
    }
  }
  return out;
}

// Groups from the axes alone: members by their digits, first axis major.
inline std::vector<std::vector<int64_t>> groupsByDigits(const AxisList& axes, int64_t ranks) {
  std::map<int64_t, std::map<int64_t, int64_t>> groups;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t place = 0;
    int64_t rest = rank;
    for (const Axis& axis : axes) {
      int64_t stride = ranks / (axis.pre * axis.size);
      int64_t digit = rank / stride % axis.size;
      place = place * axis.size + digit;
      rest -= digit * stride;
    }
    groups[rest][place] = rank;
  }
  std::vector<std::vector<int64_t>> result;
  for (const auto& [rest, members] : groups) {
    std::vector<int64_t>& group = result.emplace_back();
    for (const auto& [place, rank] : members) {
      group.push_back(rank);
    }
  }
  return result;
}

class Ranks {
 public:
  Ranks(const Mesh& mesh, const Shape& shape) : mesh_(mesh), global_{shape, {}} {
    for (int64_t i = 0; i < countOf(shape); ++i) {
      global_.data.push_back(1000 + i);
    }
  }

  // Fills every rank's tensor by the layout; a partial value gets random terms, equal on ranks that are replicas.
  void place(const Layout& layout, std::mt19937& random) {
    AxisList partial;
    int64_t terms = 1;
    for (const Partial& p : layout.partial()) {
      partial.push_back(p.axis);
      terms *= p.axis.size;
    }
    ReduceKind kind = layout.isPartial() ? layout.partial()[0].kind : ReduceKind::kSum;
    std::vector<Tensor> term(terms, global_);
    for (size_t i = 0; i < global_.data.size(); ++i) {
      splitValue(i, kind, random, term);
    }
    for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
      int64_t which = 0;
      for (const Axis& axis : partial) {
        which = which * axis.size + mesh_.coordinate(axis, rank);
      }
      Slice slice = layout.slice(global_.shape, mesh_, rank);
      local_.push_back(blockOf(term[which], slice.offset, slice.size));
    }
  }

  void run(const ReshardStep& step) {
    std::vector<Tensor> next = local_;
    if (step.kind == CollectiveKind::kPermute) {
      for (int64_t rank = 0; rank < mesh_.ranks(); ++rank) {
        next[rank] = local_[step.source[rank]];
      }
      local_ = next;
      return;
    }
    for (const std::vector<int64_t>& group : groupsByDigits(step.axes, mesh_.ranks())) {
      for (size_t i = 0; i < group.size(); ++i) {
        next[group[i]] = member(step, group, i);
      }
    }
    local_ = next;
  }

  // Compares with `layout`; says what differs, empty if nothing does. Where `layout` is partial, its terms must
  // reduce to the value.
  std::string compare(const Layout& layout) const {
    AxisList partial;
    for (const Partial& p : layout.partial()) {
      partial.push_back(p.axis);
    }
    for (const std::vector<int64_t>& group : groupsByDigits(partial, mesh_.ranks())) {
      std::vector<Tensor> terms;
      for (int64_t rank : group) {
        terms.push_back(local_[rank]);
      }
      Slice slice = layout.slice(global_.shape, mesh_, group[0]);
      Tensor expected = blockOf(global_, slice.offset, slice.size);
      Tensor found = layout.isPartial() ? reduceAll(terms, layout.partial()[0].kind) : terms[0];
      if (found.shape != expected.shape || found.data != expected.data) {
        return "rank " + std::to_string(group[0]) + " holds other elements than " + layout.print(mesh_) + " says";
      }
    }
    return "";
  }

 private:
  void splitValue(size_t i, ReduceKind kind, std::mt19937& random, std::vector<Tensor>& term) const {
    int64_t value = global_.data[i];
    size_t exact = random() % term.size();
    int64_t sum = 0;
    for (size_t t = 0; t < term.size(); ++t) {
      int64_t noise = 1 + static_cast<int64_t>(random() % 100000);
      if (kind == ReduceKind::kSum) {
        term[t].data[i] = noise;
        sum += t == exact ? 0 : noise;
      } else {
        term[t].data[i] = kind == ReduceKind::kMax ? value - noise : value + noise;
      }
    }
    term[exact].data[i] = kind == ReduceKind::kSum ? value - sum : value;
  }

  Tensor member(const ReshardStep& step, const std::vector<int64_t>& group, size_t i) const {
    int64_t n = static_cast<int64_t>(group.size());
    std::vector<Tensor> all;
    for (int64_t rank : group) {
      all.push_back(local_[rank]);
    }
    switch (step.kind) {
      case CollectiveKind::kSlice:
        return partAlong(all[i], step.targetDim, static_cast<int64_t>(i), n);
      case CollectiveKind::kAllGather:
        return joinAlong(all, step.sourceDim);
      case CollectiveKind::kAllToAll:
        for (Tensor& sent : all) {
          sent = partAlong(sent, step.targetDim, static_cast<int64_t>(i), n);
        }
        return joinAlong(all, step.sourceDim);
      case CollectiveKind::kReduceScatter:
        return partAlong(reduceAll(all, step.reduce), step.targetDim, static_cast<int64_t>(i), n);
      case CollectiveKind::kAllReduce:
        return reduceAll(all, step.reduce);
      case CollectiveKind::kPermute:
        break;
    }
    return {};
  }

  const Mesh& mesh_;
  Tensor global_;
  std::vector<Tensor> local_;
};

}  // namespace weft::testing
