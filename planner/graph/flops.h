// How much arithmetic an operator does at local sizes, from its facts and its rule alone.
//
// The FLOPs of every operator are a constant times the points of its iteration space, whatever part of it a rank has.
// The points are the product of the sizes of some factors:
//
//   - those of the operands (matmul m k n, gelu d0 d1): an operator does the same for each element that it reads, or
//     for each pair of elements. A factor that only results have either is whole and cannot be padded (the image that
//     a convolution makes), so that it belongs to the constant, or says where the elements go (the rows of an
//     embedding's gradient), so that splitting it saves no arithmetic;
//   - of an operator whose operands have no factor (random), those of the results;
//   - never one marked `~`, which counts micro-batches that the batch counts already.
//
// So the constant that the whole program gives (OperatorFacts::flopsPerPoint) holds for each rank and micro-batch, and
// for stored sizes with their pads.
#pragma once

#include <optional>
#include <vector>

#include "ir/layout/rule.h"
#include "planner/graph/program_graph.h"
#include "planner/machine/times.h"

namespace weft {

// Points of one rank's part of one micro-batch. `axes`: of each factor, the time axis included; none for the whole.
double pointsOf(const Rule& rule, const FactorAxes& axes);
double pointsOf(const Rule& rule);

// Floating-point operations of one rank for one micro-batch. `rule`: with stored sizes.
double flopsOf(const OperatorFacts& facts, const Rule& rule, const FactorAxes& axes);

// Does an operator with this rule multiply two operands and sum over what both have? Then it is a matrix product: what
// its first result has of both operands is the batch, of the first alone the rows, of the second alone the columns. A
// convolution is one, too: what only its result has (the places of the image) are rows. The gradient of an embedding is
// none: ids say which rows of the result are added to.
//
//   b m k+, b k+ n -> b m n                      batch b, rows m, columns n
//   n ci+ h! w!, co ci+ kh! kw! -> n co oh! ow!  rows n oh ow, columns co
bool isProduct(const Rule& rule);

// The sizes of one rank's product for one micro-batch; nothing of what is none. What is summed over follows from its
// FLOPs, 2 for each element of the batch, rows, columns and sum.
std::optional<ProductShape> productOf(const Rule& rule, const FactorAxes& axes, double flops);

// In what an operator computes: the narrowest of its operands' floats, else as its result.
DType arithmeticType(const std::vector<DType>& operands, DType result);

// The arithmetic of one rank for one micro-batch, for the price of its kernel; type and bytes are left to the caller.
KernelWork arithmeticOf(const OperatorFacts& facts, const Rule& rule, const FactorAxes& axes);

}  // namespace weft
