#include "kernels/cpu/families.h"

namespace weft {

KernelRegistry cpuKernels(const CpuKernelOptions& options) {
  KernelRegistry registry;
  addElementwiseKernels(registry);
  addActivationKernels(registry);
  addContractionKernels(registry, options);
  addConvolutionKernels(registry, options);
  addChannelKernels(registry);
  addShapeKernels(registry);
  addReductionKernels(registry);
  addAlongKernels(registry);
  addNormalizationKernels(registry);
  addIndexKernels(registry);
  addAttentionKernels(registry, options);
  addPoolingKernels(registry);
  addRotaryKernels(registry);
  addRandomKernels(registry);
  addUpdateKernels(registry);
  return registry;
}

}  // namespace weft
