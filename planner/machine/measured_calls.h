// What a kernel takes by the calls of it that were measured in steps (Machine::kernels).
//
// A call that was measured takes what was measured. Any other takes plainSeconds() times a slowdown, which is fitted to
// those of the measured calls around it: its logarithm as a linear function of the logarithms of a call's arithmetic
// and bytes, of a product of its rows, columns, sums and bytes, with the nearest calls weighing most (Cleveland,
// "Robust locally weighted regression and smoothing scatterplots", 1979). A mean of them would not do: where batches
// were measured twice and half as large, and columns only half as many, it would count the few columns as if they came
// with every batch between. Slopes that the calls say little about stay near 0 (ridge), and no slowdown is beyond those
// that were measured.
#pragma once

#include <optional>

#include "planner/machine/machine.h"
#include "planner/machine/times.h"

namespace weft {

// Nothing where no call of the kernel was measured.
std::optional<double> measuredSeconds(const Machine& machine, const KernelWork& work);

// The least of how many times plainSeconds() each measured call of the kernel took; nothing where none was.
std::optional<double> leastSlowdown(const Machine& machine, const KernelWork& work);

}  // namespace weft
