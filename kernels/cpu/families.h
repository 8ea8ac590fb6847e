// The operator families; each file of this folder adds its kernels to a registry.
#pragma once

#include "kernels/kernel.h"

namespace weft {

void addElementwiseKernels(KernelRegistry& registry);
void addActivationKernels(KernelRegistry& registry);
void addContractionKernels(KernelRegistry& registry, const CpuKernelOptions& options);
void addConvolutionKernels(KernelRegistry& registry, const CpuKernelOptions& options);
void addChannelKernels(KernelRegistry& registry);
void addShapeKernels(KernelRegistry& registry);
void addReductionKernels(KernelRegistry& registry);
void addAlongKernels(KernelRegistry& registry);
void addNormalizationKernels(KernelRegistry& registry);
void addIndexKernels(KernelRegistry& registry);
void addAttentionKernels(KernelRegistry& registry, const CpuKernelOptions& options);
void addPoolingKernels(KernelRegistry& registry);
void addRandomKernels(KernelRegistry& registry);
void addRotaryKernels(KernelRegistry& registry);
void addUpdateKernels(KernelRegistry& registry);

}  // namespace weft
