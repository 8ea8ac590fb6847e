// Counter-based random kernels: values depend on (seed, key, step, global index), never on the layout. Scalars: the
// origin of every dimension.

#include "runtime/base/random.h"

#include "kernels/cpu/families.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

using Ints = std::vector<int64_t>;

absl::StatusOr<RandomStream> streamOf(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t seed, attribute<int64_t>(spec.attributes, "seed"));
  WEFT_ASSIGN_OR_RETURN(const int64_t key, attribute<int64_t>(spec.attributes, "key"));
  return RandomStream{static_cast<uint64_t>(seed), static_cast<uint32_t>(key), 0};
}

// Calls visit(local index, global index) for every element; `shape` local.
template <typename Visit>
void forEachGlobal(const Ints& shape, const Ints& globalStrides, const int64_t* origins, const Visit& visit) {
  int64_t n = 1;
  int64_t base = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    n *= shape[d];
    base += origins[d] * globalStrides[d];
  }
  const int64_t width = shape.empty() ? 1 : shape.back();
  for (int64_t row = 0; row < (width == 0 ? 0 : n / width); ++row) {
    int64_t rest = row;
    int64_t global = base;
    for (size_t d = shape.size(); d-- > 1;) {
      global += rest % shape[d - 1] * globalStrides[d - 1];
      rest /= shape[d - 1];
    }
    for (int64_t i = 0; i < width; ++i) {
      visit(row * width + i, static_cast<uint64_t>(global + i));
    }
  }
}

template <typename T>
KernelOr dropout(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 2, 1));
  WEFT_RETURN_IF_ERROR(checkScalars(spec, spec.inputs[0].shape.size()));
  WEFT_ASSIGN_OR_RETURN(const double rate, attribute<double>(spec.attributes, "rate"));
  WEFT_ASSIGN_OR_RETURN(const Ints global, attribute<Ints>(spec.attributes, "global_shape"));
  WEFT_ASSIGN_OR_RETURN(const RandomStream stream, streamOf(spec));
  const Ints shape = spec.inputs[0].shape;
  const Ints strides = stridesOf(global);
  const bool wide = spec.inputs[1].type == DType::kI64;
  return makeKernel([=](const KernelArguments& args) {
    RandomStream now = stream;
    now.step = static_cast<uint32_t>(wide ? *in<int64_t>(args, 1) : *in<int32_t>(args, 1));
    const T scale = static_cast<T>(1.0 / (1.0 - rate));
    const T* x = in<T>(args, 0);
    T* y = out<T>(args, 0);
    forEachGlobal(shape, strides, args.scalars, [&](int64_t local, uint64_t index) {
      y[local] = randomUniform(now, index) >= rate ? x[local] * scale : T(0);
    });
    return absl::OkStatus();
  });
}

template <typename T>
KernelOr random(const KernelSpec& spec) {
  WEFT_RETURN_IF_ERROR(checkCounts(spec, 0, 1));
  WEFT_RETURN_IF_ERROR(checkScalars(spec, spec.outputs[0].shape.size()));
  WEFT_ASSIGN_OR_RETURN(const std::string distribution, attribute<std::string>(spec.attributes, "distribution"));
  WEFT_ASSIGN_OR_RETURN(const double a, attribute<double>(spec.attributes, "a"));
  WEFT_ASSIGN_OR_RETURN(const double b, attribute<double>(spec.attributes, "b"));
  WEFT_ASSIGN_OR_RETURN(const Ints global, attribute<Ints>(spec.attributes, "global_shape"));
  WEFT_ASSIGN_OR_RETURN(const RandomStream stream, streamOf(spec));
  const Ints shape = spec.outputs[0].shape;
  const Ints strides = stridesOf(global);
  const bool normal = distribution == "normal";
  return makeKernel([=](const KernelArguments& args) {
    T* y = out<T>(args, 0);
    forEachGlobal(shape, strides, args.scalars, [&](int64_t local, uint64_t index) {
      y[local] = normal ? static_cast<T>(a + b * randomNormal(stream, index))
                        : static_cast<T>(a + (b - a) * randomUniform(stream, index));
    });
    return absl::OkStatus();
  });
}

}  // namespace

void addRandomKernels(KernelRegistry& registry) {
  registry.add("dropout", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.inputs.at(0).type, [&]<typename T>() { return dropout<T>(spec); });
  });
  registry.add("random", [](const KernelSpec& spec) {
    return dispatchFloat(spec, spec.outputs.at(0).type, [&]<typename T>() { return random<T>(spec); });
  });
}

}  // namespace weft
