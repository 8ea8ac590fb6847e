// Kernels that read integer ids: embedding, softmax cross entropy, pick, and their gradients. Each takes as scalar 0
// the global index of the first row (or class) this rank holds.

#include <cmath>
#include <cstring>

#include "kernels/cpu/families.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

template <typename Id>
absl::Status outOfRange(const char* what, Id id, int64_t rows) {
  return absl::OutOfRangeError(absl::StrCat(what, " ", static_cast<int64_t>(id), " is outside 0..", rows - 1));
}

template <typename T, typename Id>
KernelOr embedding(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t rows, attribute<int64_t>(spec.attributes, "rows"));
  const int64_t local = spec.inputs[0].shape[0];
  const int64_t width = spec.inputs[0].shape[1];
  const int64_t ids = spec.inputs[1].elements();
  return makeKernel([=](const KernelArguments& args) {
    for (int64_t i = 0; i < ids; ++i) {
      const Id id = in<Id>(args, 1)[i];
      if (id < 0 || id >= rows) {
        return outOfRange("id", id, rows);
      }
      const int64_t row = id - args.scalars[0];
      T* y = out<T>(args, 0) + i * width;
      if (row >= 0 && row < local) {
        std::memcpy(y, in<T>(args, 0) + row * width, width * sizeof(T));
      } else {
        std::fill_n(y, width, T(0));
      }
    }
    return absl::OkStatus();
  });
}

template <typename T, typename Id>
KernelOr embeddingGrad(const KernelSpec& spec) {
  const int64_t local = spec.outputs[0].shape[0];
  const int64_t width = spec.outputs[0].shape[1];
  const int64_t ids = spec.inputs[0].elements();
  return makeKernel([=](const KernelArguments& args) {
    T* table = out<T>(args, 0);
    std::fill_n(table, local * width, T(0));
    for (int64_t i = 0; i < ids; ++i) {
      const int64_t row = in<Id>(args, 0)[i] - args.scalars[0];
      if (row < 0 || row >= local) {
        continue;
      }
      const T* dy = in<T>(args, 1) + i * width;
      for (int64_t c = 0; c < width; ++c) {
        table[row * width + c] += dy[c];
      }
    }
    return absl::OkStatus();
  });
}

// loss = lse - logit of the label, 0 where the label is ignored.
template <typename T, typename Id>
KernelOr crossEntropy(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t ignore, attribute<int64_t>(spec.attributes, "ignore_index"));
  WEFT_ASSIGN_OR_RETURN(const int64_t classes, attribute<int64_t>(spec.attributes, "rows"));
  const int64_t width = spec.inputs[0].shape.back();
  const int64_t rows = spec.inputs[1].elements();
  return makeKernel([=](const KernelArguments& args) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = in<T>(args, 0) + r * width;
      const Id label = in<Id>(args, 1)[r];
      if (label != ignore && (label < 0 || label >= classes)) {
        return outOfRange("label", label, classes);
      }
      T most = x[0];
      for (int64_t i = 1; i < width; ++i) {
        most = std::max(most, x[i]);
      }
      double total = 0;
      for (int64_t i = 0; i < width; ++i) {
        total += std::exp(x[i] - most);
      }
      const T lse = most + static_cast<T>(std::log(total));
      out<T>(args, 0)[r] = label == ignore ? T(0) : lse - x[label];
      out<T>(args, 1)[r] = lse;
    }
    return absl::OkStatus();
  });
}

template <typename T, typename Id>
KernelOr crossEntropyGrad(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t ignore, attribute<int64_t>(spec.attributes, "ignore_index"));
  const int64_t width = spec.inputs[0].shape.back();
  const int64_t rows = spec.inputs[1].elements();
  return makeKernel([=](const KernelArguments& args) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = in<T>(args, 0) + r * width;
      T* dx = out<T>(args, 0) + r * width;
      const Id label = in<Id>(args, 1)[r];
      if (label == ignore) {
        std::fill_n(dx, width, T(0));
        continue;
      }
      const T lse = in<T>(args, 2)[r];
      const T dloss = in<T>(args, 3)[r];
      for (int64_t i = 0; i < width; ++i) {
        dx[i] = std::exp(x[i] - lse) * dloss;
      }
      const int64_t place = label - args.scalars[0];
      if (place >= 0 && place < width) {
        dx[place] -= dloss;
      }
    }
    return absl::OkStatus();
  });
}

template <typename T, typename Id>
KernelOr pick(const KernelSpec& spec) {
  const int64_t width = spec.inputs[0].shape.back();
  const int64_t rows = spec.inputs[1].elements();
  return makeKernel([=](const KernelArguments& args) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t place = in<Id>(args, 1)[r] - args.scalars[0];
      out<T>(args, 0)[r] = place >= 0 && place < width ? in<T>(args, 0)[r * width + place] : T(0);
    }
    return absl::OkStatus();
  });
}

template <typename T, typename Id>
KernelOr pickGrad(const KernelSpec& spec) {
  const int64_t width = spec.outputs[0].shape.back();
  const int64_t rows = spec.inputs[0].elements();
  return makeKernel([=](const KernelArguments& args) {
    T* dx = out<T>(args, 0);
    std::fill_n(dx, rows * width, T(0));
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t place = in<Id>(args, 0)[r] - args.scalars[0];
      if (place >= 0 && place < width) {
        dx[r * width + place] = in<T>(args, 1)[r];
      }
    }
    return absl::OkStatus();
  });
}

// Adds a kernel over float type (of tensor `value`) and id type (of tensor `ids`) that takes one origin.
struct Family {
  size_t inputs;
  size_t outputs;
  size_t value;
  size_t ids;
  size_t scalars;
};

template <typename Make>
void addFamily(KernelRegistry& registry, const std::string& name, const Family& family, Make make) {
  registry.add(name, [=](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkCounts(spec, family.inputs, family.outputs));
    WEFT_RETURN_IF_ERROR(checkScalars(spec, family.scalars));
    return dispatchFloat(spec, spec.inputs[family.value].type, [&]<typename T>() {
      return dispatchIds(spec, spec.inputs[family.ids].type,
                         [&]<typename Id>() { return make.template operator()<T, Id>(spec); });
    });
  });
}

}  // namespace

void addIndexKernels(KernelRegistry& registry) {
  addFamily(registry, "embedding", {2, 1, 0, 1, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return embedding<T, Id>(spec); });
  addFamily(registry, "embedding_grad", {2, 1, 1, 0, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return embeddingGrad<T, Id>(spec); });
  addFamily(registry, "softmax_cross_entropy", {2, 2, 0, 1, 0},
            []<typename T, typename Id>(const KernelSpec& spec) { return crossEntropy<T, Id>(spec); });
  addFamily(registry, "softmax_cross_entropy_grad", {4, 1, 0, 1, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return crossEntropyGrad<T, Id>(spec); });
  addFamily(registry, "pick", {2, 1, 0, 1, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return pick<T, Id>(spec); });
  addFamily(registry, "pick_grad", {2, 1, 1, 0, 1},
            []<typename T, typename Id>(const KernelSpec& spec) { return pickGrad<T, Id>(spec); });
}

}  // namespace weft
