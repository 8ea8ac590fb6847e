// Rotary position embedding (Su et al., "RoFormer", 2021): pairs (a, b) of each row become (a cos - b sin, a sin +
// b cos), or, inverse, (a cos + b sin, b cos - a sin).

#include "kernels/cpu/families.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// Where the two elements of pair i stand: at i * step and at that plus `apart`.
struct Pairs {
  int64_t count = 0;
  int64_t step = 1;
  int64_t apart = 0;
};

template <typename T>
void turnRow(const Pairs& pairs, const T* x, const T* cos, const T* sin, T direction, T* y) {
  WEFT_INDEPENDENT
  for (int64_t i = 0; i < pairs.count; ++i) {
    const T a = x[i * pairs.step];
    const T b = x[i * pairs.step + pairs.apart];
    const T s = direction * sin[i];
    y[i * pairs.step] = a * cos[i] - b * s;
    y[i * pairs.step + pairs.apart] = a * s + b * cos[i];
  }
}

template <typename T>
KernelOr rotary(const KernelSpec& spec) {
  const TensorSpec& x = spec.inputs[0];
  WEFT_RETURN_IF_ERROR(checkDims(spec, x, 2));
  const Rows rows = rowsOf(x.shape);
  const int64_t positions = x.shape[x.shape.size() - 2];
  if (rows.width % 2 != 0) {
    return invalid(spec, "turns pairs of each row, it was given ", tensorText(x), " with rows of ", rows.width);
  }
  const TensorSpec table = {x.type, {positions, rows.width / 2}};
  WEFT_RETURN_IF_ERROR(checkInput(spec, 1, table));
  WEFT_RETURN_IF_ERROR(checkInput(spec, 2, table));
  WEFT_RETURN_IF_ERROR(checkOutput(spec, 0, x));
  WEFT_ASSIGN_OR_RETURN(const int64_t interleaved, attributeOr<int64_t>(spec.attributes, "interleaved", 0));
  WEFT_ASSIGN_OR_RETURN(const int64_t inverse, attributeOr<int64_t>(spec.attributes, "inverse", 0));
  const int64_t half = rows.width / 2;
  const Pairs pairs = interleaved != 0 ? Pairs{half, 2, 1} : Pairs{half, 1, half};
  const T direction = inverse != 0 ? T(-1) : T(1);
  return makeKernel([=](const KernelArguments& args) {
    for (int64_t r = 0; r < rows.count; ++r) {
      const int64_t at = r * rows.width;
      const int64_t angle = r % positions * half;
      turnRow(pairs, in<T>(args, 0) + at, in<T>(args, 1) + angle, in<T>(args, 2) + angle, direction,
              out<T>(args, 0) + at);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void addRotaryKernels(KernelRegistry& registry) {
  registry.add("rotary", withArity({3, 1}, [](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return rotary<T>(spec); });
               }));
}

}  // namespace weft
