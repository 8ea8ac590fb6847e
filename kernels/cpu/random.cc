// Counter-based random kernels: values depend on (seed, key, step, global index), never on the layout. Scalars: the
// origin of every dimension.

#include "runtime/base/random.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

absl::StatusOr<RandomStream> streamOf(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const int64_t seed, attribute<int64_t>(spec.attributes, "seed"));
  WEFT_ASSIGN_OR_RETURN(const int64_t key, attribute<int64_t>(spec.attributes, "key"));
  return RandomStream{static_cast<uint64_t>(seed), static_cast<uint32_t>(key), 0};
}

// Where a local tensor lies in its global one.
class GlobalRows {
 public:
  static absl::StatusOr<GlobalRows> create(const KernelSpec& spec, const Ints& shape) {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {spec.inputs.size(), 1, shape.size()}));
    WEFT_ASSIGN_OR_RETURN(const Ints global, attribute<Ints>(spec.attributes, "global_shape"));
    const bool negative = std::any_of(global.begin(), global.end(), [](int64_t size) { return size < 0; });
    // The farthest index within the local tensor, in the global one.
    int64_t farthest = boundedElements(global);
    for (size_t d = 0; !negative && global.size() == shape.size() && d < shape.size(); ++d) {
      const Ints inner(global.begin() + static_cast<int64_t>(d) + 1, global.end());
      farthest = boundedSum(farthest, boundedProduct(shape[d], boundedElements(inner)));
    }
    if (global.size() != shape.size() || negative || farthest >= kMostSize) {
      return invalid(spec, "global_shape is ", shapeText(global), " for a local tensor ", shapeText(shape));
    }
    return GlobalRows(shape, stridesOf(global));
  }

  // visit(first local index, first global index, count) for runs of elements that follow each other in both.
  template <typename Visit>
  void run(const int64_t* origins, const Visit& visit) const {
    uint64_t base = 0;
    for (size_t d = 0; d < strides_.size(); ++d) {
      base += static_cast<uint64_t>(origins[d]) * static_cast<uint64_t>(strides_[d]);
    }
    loop_.run([&](const auto& at, int64_t count, const auto& step) {
      const uint64_t global = base + static_cast<uint64_t>(at[1]);
      if (step[1] == 1) {
        visit(at[0], global, count);
        return;
      }
      for (int64_t i = 0; i < count; ++i) {
        visit(at[0] + i * step[0], global + static_cast<uint64_t>(i * step[1]), int64_t{1});
      }
    });
  }

 private:
  GlobalRows(const Ints& shape, const Ints& strides) : strides_(strides), loop_(shape, {stridesOf(shape), strides}) {}

  Ints strides_;
  StridedLoop<2> loop_;
};

// Random bits of `count` elements from `global` on, in pieces: visit(index within the run, bits, count).
template <typename Visit>
void forPieces(const RandomStream& stream, uint64_t global, int64_t count, const Visit& visit) {
  constexpr int64_t kPiece = 256;
  uint32_t bits[kPiece];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t n = std::min(kPiece, count - i);
    randomBits(stream, global + static_cast<uint64_t>(i), n, bits);
    visit(i, bits, n);
  }
}

// y = x / (1 - rate) where kept, else 0. Kept: randomUniform >= rate, that is, its 24 bits >= rate * 2^24.
template <typename T>
KernelOr dropout(const KernelSpec& spec) {
  const bool wide = spec.inputs[1].type == DType::kI64;
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, {wide ? DType::kI64 : DType::kI32, {}}));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, spec.inputs[0]));
  WEFT_ASSIGN_OR_RETURN(const double rate, attribute<double>(spec.attributes, "rate"));
  if (!(rate >= 0.0 && rate < 1.0)) {
    return invalid(spec, "rate is ", rate, ", it must be in [0, 1)");
  }
  WEFT_ASSIGN_OR_RETURN(const GlobalRows rows, GlobalRows::create(spec, spec.inputs[0].shape));
  WEFT_ASSIGN_OR_RETURN(const RandomStream stream, streamOf(spec));
  const auto threshold = static_cast<uint32_t>(std::ceil(rate * 0x1p24));
  const T scale = static_cast<T>(1.0 / (1.0 - rate));
  return makeKernel([=](const KernelArguments& args) {
    RandomStream now = stream;
    now.step = static_cast<uint32_t>(wide ? *in<int64_t>(args, 1) : *in<int32_t>(args, 1));
    rows.run(args.scalars, [&](int64_t local, uint64_t global, int64_t count) {
      forPieces(now, global, count, [&](int64_t first, const uint32_t* bits, int64_t n) {
        const T* x = in<T>(args, 0) + local + first;
        T* y = out<T>(args, 0) + local + first;
        WEFT_INDEPENDENT
        for (int64_t i = 0; i < n; ++i) {
          y[i] = (bits[i] >> 8) >= threshold ? x[i] * scale : T(0);
        }
      });
    });
    return absl::OkStatus();
  });
}

// Normal: a + b * standard normal. Uniform: in [a, b).
template <typename T>
KernelOr random(const KernelSpec& spec) {
  WEFT_ASSIGN_OR_RETURN(const std::string distribution, attribute<std::string>(spec.attributes, "distribution"));
  if (distribution != "normal" && distribution != "uniform") {
    return invalid(spec, "distribution is '", distribution, "', it must be 'normal' or 'uniform'");
  }
  WEFT_ASSIGN_OR_RETURN(const double a, attribute<double>(spec.attributes, "a"));
  WEFT_ASSIGN_OR_RETURN(const double b, attribute<double>(spec.attributes, "b"));
  WEFT_ASSIGN_OR_RETURN(const GlobalRows rows, GlobalRows::create(spec, spec.outputs[0].shape));
  WEFT_ASSIGN_OR_RETURN(const RandomStream stream, streamOf(spec));
  const bool normal = distribution == "normal";
  return makeKernel([=](const KernelArguments& args) {
    rows.run(args.scalars, [&](int64_t local, uint64_t global, int64_t count) {
      T* y = out<T>(args, 0) + local;
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t index = global + static_cast<uint64_t>(i);
        y[i] = normal ? static_cast<T>(a + b * randomNormal(stream, index))
                      : static_cast<T>(a + (b - a) * randomUniform(stream, index));
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace

// Scalars are counted by GlobalRows, which knows the number of dimensions.
void addRandomKernels(KernelRegistry& registry) {
  registry.add("dropout", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {2, 1, spec.scalars}));
    return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return dropout<T>(spec); });
  });
  registry.add("random", [](const KernelSpec& spec) -> KernelOr {
    WEFT_RETURN_IF_ERROR(checkArity(spec, {0, 1, spec.scalars}));
    return dispatchFloat(spec, spec.outputs[0].type, [&]<typename T>() { return random<T>(spec); });
  });
}

}  // namespace weft
