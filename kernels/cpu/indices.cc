// Kernels that read integer ids: embedding, softmax cross entropy, pick, gather, scatter_add, and gradients. Where a
// family takes a scalar, it is the global index of the first row (or class) this rank holds.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

template <typename Id>
absl::Status outOfRange(const char* what, Id id, int64_t i, int64_t rows) {
  return absl::OutOfRangeError(
      absl::StrCat(what, " ", static_cast<int64_t>(id), " at element ", i, " is outside 0..", rows - 1));
}

// Where `id` stands among `count` rows from `origin` on; -1 if it is not among them. Any id may come from the data.
int64_t placeOf(int64_t id, int64_t origin, int64_t count) {
  const uint64_t place = static_cast<uint64_t>(id) - static_cast<uint64_t>(origin);
  return place < static_cast<uint64_t>(count) ? static_cast<int64_t>(place) : -1;
}

// [..., width] of the leading dimensions `leading`.
Ints withLast(Ints leading, int64_t width) {
  leading.push_back(width);
  return leading;
}

absl::Status checkTable(const KernelSpec& spec, const TensorSpec& table) {
  if (table.shape.size() != 2) {
    return invalid(spec, "the table is ", tensorText(table), ", it must have rows and columns");
  }
  return absl::OkStatus();
}

// A row this rank does not hold gives zeros: the sum over the ranks is the row.
template <typename T, typename Id>
KernelOr embedding(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkTable(spec, spec.inputs[0]));
  WEFT_ASSIGN_OR_RETURN(const int64_t rows, attribute<int64_t>(spec.attributes, "rows"));
  const int64_t local = spec.inputs[0].shape[0];
  const int64_t width = spec.inputs[0].shape[1];
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, withLast(spec.inputs[1].shape, width)}));
  const int64_t ids = spec.inputs[1].elements();
  return makeKernel([=](const KernelArguments& args) {
    for (int64_t i = 0; i < ids; ++i) {
      const Id id = in<Id>(args, 1)[i];
      if (id < 0 || id >= rows) {
        return outOfRange("embedding: id", id, i, rows);
      }
      const int64_t row = placeOf(id, args.scalars[0], local);
      T* y = out<T>(args, 0) + i * width;
      if (row >= 0) {
        std::copy_n(in<T>(args, 0) + row * width, width, y);
      } else {
        std::fill_n(y, width, T(0));
      }
    }
    return absl::OkStatus();
  });
}

// Sums in T, in the order of the ids.
template <typename T, typename Id>
KernelOr embeddingGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkTable(spec, spec.outputs[0]));
  const int64_t local = spec.outputs[0].shape[0];
  const int64_t width = spec.outputs[0].shape[1];
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.outputs[0].type, withLast(spec.inputs[0].shape, width)}));
  const int64_t ids = spec.inputs[0].elements();
  return makeKernel([=](const KernelArguments& args) {
    T* table = out<T>(args, 0);
    std::fill_n(table, local * width, T(0));
    for (int64_t i = 0; i < ids; ++i) {
      const int64_t row = placeOf(in<Id>(args, 0)[i], args.scalars[0], local);
      if (row < 0) {
        continue;
      }
      const T* dy = in<T>(args, 1) + i * width;
      T* sum = table + row * width;
      WEFT_INDEPENDENT
      for (int64_t c = 0; c < width; ++c) {
        sum[c] += dy[c];
      }
    }
    return absl::OkStatus();
  });
}

// lse = log(sum(exp(x))), loss = lse - x[label], 0 where the label is ignored.
template <typename T, typename Id>
KernelOr crossEntropy(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  WEFT_ASSIGN_OR_RETURN(const int64_t ignore, attribute<int64_t>(spec.attributes, "ignore_index"));
  const auto [count, width] = rowsOf(spec.inputs[0].shape);
  WEFT_ASSIGN_OR_RETURN(const int64_t classes, attributeOr<int64_t>(spec.attributes, "rows", width));
  // More columns than classes are padding, filled with -inf.
  if (classes < 1) {
    return invalid(spec, "needs at least one class, it was given ", classes);
  }
  if (classes > width) {
    return invalid(spec, "needs all ", classes, " classes, it was given ", width, "; expand it to split them");
  }
  const TensorSpec leading{spec.inputs[0].type, withoutLast(spec.inputs[0].shape)};
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.inputs[1].type, leading.shape}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, leading));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 1, leading));
  return makeKernel([=, count = count, width = width](const KernelArguments& args) {
    for (int64_t r = 0; r < count; ++r) {
      const T* x = in<T>(args, 0) + r * width;
      const Id label = in<Id>(args, 1)[r];
      const bool ignored = label == ignore;
      if (!ignored && (label < 0 || label >= classes)) {
        return outOfRange("softmax_cross_entropy: label", label, r, classes);
      }
      const T most = largest(x, width);
      const double rest = std::log(sumOfExponentials(x, most, width));
      out<T>(args, 0)[r] = ignored ? T(0) : static_cast<T>(rest + (static_cast<double>(most) - x[label]));
      out<T>(args, 1)[r] = static_cast<T>(most + rest);
    }
    return absl::OkStatus();
  });
}

// dlogits = (exp(x - lse) - onehot(label)) * dloss, 0 where the label is ignored.
template <typename T, typename Id>
KernelOr crossEntropyGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  WEFT_ASSIGN_OR_RETURN(const int64_t ignore, attribute<int64_t>(spec.attributes, "ignore_index"));
  const auto [count, width] = rowsOf(spec.inputs[0].shape);
  const TensorSpec leading{spec.inputs[0].type, withoutLast(spec.inputs[0].shape)};
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.inputs[1].type, leading.shape}));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, leading));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 3, leading));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  return makeKernel([=, count = count, width = width](const KernelArguments& args) {
    for (int64_t r = 0; r < count; ++r) {
      const T* x = in<T>(args, 0) + r * width;
      T* dx = out<T>(args, 0) + r * width;
      const Id label = in<Id>(args, 1)[r];
      if (label == ignore) {
        std::fill_n(dx, width, T(0));
        continue;
      }
      const T lse = in<T>(args, 2)[r];
      const T dloss = in<T>(args, 3)[r];
      WEFT_INDEPENDENT
      for (int64_t i = 0; i < width; ++i) {
        dx[i] = math::exp(x[i] - lse) * dloss;
      }
      if (const int64_t place = placeOf(label, args.scalars[0], width); place >= 0) {
        dx[place] -= dloss;
      }
    }
    return absl::OkStatus();
  });
}

template <typename T, typename Id>
KernelOr pick(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.inputs[0], 1));
  const auto [count, width] = rowsOf(spec.inputs[0].shape);
  const Ints leading = withoutLast(spec.inputs[0].shape);
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.inputs[1].type, leading}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, leading}));
  WEFT_ASSIGN_OR_RETURN(const int64_t rows, attributeOr<int64_t>(spec.attributes, "rows", 0));
  WEFT_ASSIGN_OR_RETURN(const int64_t ignore, attributeOr<int64_t>(spec.attributes, "ignore_index", -100));
  return makeKernel([=, count = count, width = width](const KernelArguments& args) {
    for (int64_t r = 0; r < count; ++r) {
      const Id label = in<Id>(args, 1)[r];
      if (rows > 0 && label != ignore && (label < 0 || label >= rows)) {
        return outOfRange("label", label, r, rows);
      }
      const int64_t place = placeOf(label, args.scalars[0], width);
      out<T>(args, 0)[r] = place >= 0 ? in<T>(args, 0)[r * width + place] : T(0);
    }
    return absl::OkStatus();
  });
}

template <typename T, typename Id>
KernelOr pickGrad(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkDims(spec, spec.outputs[0], 1));
  const auto [count, width] = rowsOf(spec.outputs[0].shape);
  const Ints leading = withoutLast(spec.outputs[0].shape);
  WEFT_RETURN_IF_ERROR(checkInput(spec, 0, {spec.inputs[0].type, leading}));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.outputs[0].type, leading}));
  return makeKernel([=, count = count, width = width](const KernelArguments& args) {
    T* dx = out<T>(args, 0);
    std::fill_n(dx, count * width, T(0));
    for (int64_t r = 0; r < count; ++r) {
      if (const int64_t place = placeOf(in<Id>(args, 0)[r], args.scalars[0], width); place >= 0) {
        dx[r * width + place] = in<T>(args, 1)[r];
      }
    }
    return absl::OkStatus();
  });
}

// How indices lie beside the tensor they look up in: the two agree but for dimension `dim`.
struct Lookup {
  Along table;
  int64_t indices = 1;  // along the dimension
  int64_t rows = 1;     // of the whole table
};

absl::StatusOr<Lookup> lookupOf(const KernelSpec& spec, const TensorSpec& table, const TensorSpec& index) {
  WEFT_ASSIGN_OR_RETURN(const Along whole, alongOf(spec, table));
  WEFT_ASSIGN_OR_RETURN(const Along part, alongOf(spec, index));
  WEFT_ASSIGN_OR_RETURN(const int64_t rows, attribute<int64_t>(spec.attributes, "rows"));
  if (whole.others != part.others) {
    return invalid(spec, tensorText(table), " and ", tensorText(index), " differ elsewhere than in the dimension");
  }
  return Lookup{whole, part.count, rows};
}

// visit(element of the index, element in the part that starts at the origin, -1 outside) for each index, in order.
template <typename Id, typename Visit>
absl::Status forEachPlace(const Lookup& lookup, const Id* index, int64_t origin, const Visit& visit) {
  const auto& [outer, local, inner, others] = lookup.table;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < lookup.indices; ++k) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t at = (o * lookup.indices + k) * inner + i;
        if (index[at] < 0 || index[at] >= lookup.rows) {
          return outOfRange("index", index[at], at, lookup.rows);
        }
        const int64_t place = placeOf(index[at], origin, local);
        visit(at, place < 0 ? -1 : (o * local + place) * inner + i);
      }
    }
  }
  return absl::OkStatus();
}

template <typename T, typename Id>
KernelOr gather(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Lookup lookup, lookupOf(spec, spec.inputs[0], spec.inputs[1]));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, {spec.inputs[0].type, spec.inputs[1].shape}));
  return makeKernel([lookup](const KernelArguments& args) {
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    return forEachPlace(lookup, in<Id>(args, 1), args.scalars[0],
                        [&](int64_t at, int64_t place) { y[at] = place >= 0 ? x[place] : T(0); });
  });
}

// Sums in T, in the order of the indices.
template <typename T, typename Id>
KernelOr scatterAdd(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const Lookup lookup, lookupOf(spec, spec.outputs[0], spec.inputs[0]));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {spec.outputs[0].type, spec.inputs[0].shape}));
  const int64_t n = spec.outputs[0].elements();
  return makeKernel([lookup, n](const KernelArguments& args) {
    const T* updates = in<T>(args, 1);
    T* y = out<T>(args, 0);
    std::fill_n(y, n, T(0));
    return forEachPlace(lookup, in<Id>(args, 0), args.scalars[0], [&](int64_t at, int64_t place) {
      if (place >= 0) {
        y[place] = wrappingSum(y[place], updates[at]);
      }
    });
  });
}

// Which inputs decide the float and the id type.
struct Family {
  Arity arity;
  size_t value;
  size_t ids;
};

template <typename Make>
void addFamily(KernelRegistry& registry, const std::string& name, const Family& family, Make make) {
  registry.add(name, withArity(family.arity, [=](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[family.value].type, [&]<typename T>() {
                   return dispatchIds(spec, spec.inputs[family.ids].type,
                                      [&]<typename Id>() { return make.template operator()<T, Id>(spec); });
                 });
               }));
}

// The same for families that take integers as values, too.
template <typename Make>
void addNumericFamily(KernelRegistry& registry, const std::string& name, const Family& family, Make make) {
  registry.add(name, withArity(family.arity, [=](const KernelSpec& spec) {
                 return dispatchNumeric(spec, spec.inputs[family.value].type, [&]<typename T>() {
                   return dispatchIds(spec, spec.inputs[family.ids].type,
                                      [&]<typename Id>() { return make.template operator()<T, Id>(spec); });
                 });
               }));
}

}  // namespace

void addIndexKernels(KernelRegistry& registry) {
  addFamily(registry, "embedding", {{2, 1, 1}, 0, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return embedding<T, Id>(spec); });
  addFamily(registry, "embedding_grad", {{2, 1, 1}, 1, 0},
            []<typename T, typename Id>(const KernelSpec& spec) { return embeddingGrad<T, Id>(spec); });
  addFamily(registry, "softmax_cross_entropy", {{2, 2, 0}, 0, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return crossEntropy<T, Id>(spec); });
  addFamily(registry, "softmax_cross_entropy_grad", {{4, 1, 1}, 0, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return crossEntropyGrad<T, Id>(spec); });
  addFamily(registry, "pick", {{2, 1, 1}, 0, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return pick<T, Id>(spec); });
  addFamily(registry, "pick_grad", {{2, 1, 1}, 1, 0},
            []<typename T, typename Id>(const KernelSpec& spec) { return pickGrad<T, Id>(spec); });
  addNumericFamily(registry, "gather", {{2, 1, 1}, 0, 1},
                   []<typename T, typename Id>(const KernelSpec& spec) { return gather<T, Id>(spec); });
  addNumericFamily(registry, "scatter_add", {{2, 1, 1}, 1, 0},
                   []<typename T, typename Id>(const KernelSpec& spec) { return scatterAdd<T, Id>(spec); });
}

}  // namespace weft
