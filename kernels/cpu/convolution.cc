// conv2d and its two gradients, over images [n, ci, h, w] (n may be several dimensions) and weights [co, ci, kh, kw],
// in as many groups of channels as the image has more channels than the weight takes.
//
// For each group, each block of rows of a sample's result (kernels/describe/convolution.h) is one matrix product. With
// `columns` [ci kh kw, places] holding what lies under each place of the window:
//
//   conv2d              y block = weight [co, ci kh kw] columns
//   conv2d_input_grad   columns = weight^T (dy block), then added to dx where they came from
//   conv2d_weight_grad  dweight += (dy block) columns^T
//
// Products are oneDNN's for f32, own loops for f64 and where asked. The library's own convolutions would want their
// tensors in formats of their own, and a copy there and back for every call. Sums over samples and blocks are taken in
// their order, so a result depends on the local data and shapes alone.

#include "kernels/describe/convolution.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/families.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// What one product computes: rows `first` to `first + count` of one group of a sample's result.
struct Part {
  int64_t sample;
  int64_t group;
  int64_t first;
  int64_t count;
};

struct Geometry {
  int64_t samples, groups;
  int64_t ci, h, w;  // channels of one group
  int64_t co, kh, kw;
  int64_t ho, wo;
  int64_t strides[2];
  int64_t paddings[2];
  int64_t dilations[2];
  int64_t blockRows;  // rows of the result in one block; the last may have less

  // Of one group.
  int64_t depth() const { return ci * kh * kw; }
  int64_t imageSize() const { return ci * h * w; }
  int64_t resultSize() const { return co * ho * wo; }
  int64_t weightSize() const { return co * depth(); }
  // Where a group of a sample begins, and a block of its result.
  int64_t imageAt(const Part& part) const { return (part.sample * groups + part.group) * imageSize(); }
  int64_t resultAt(const Part& part) const {
    return (part.sample * groups + part.group) * resultSize() + part.first * wo;
  }
  int64_t weightAt(const Part& part) const { return part.group * weightSize(); }
};

absl::Status checkShapes(const KernelSpec& spec, const ConvolutionTensors& tensors, const Geometry& g) {
  const int64_t rows = g.h + 2 * g.paddings[0] - (g.kh - 1) * g.dilations[0] - 1;
  const int64_t columns = g.w + 2 * g.paddings[1] - (g.kw - 1) * g.dilations[1] - 1;
  const bool fits = rows >= 0 && columns >= 0 && g.ho == rows / g.strides[0] + 1 && g.wo == columns / g.strides[1] + 1;
  const bool channels = tensors.x.shape[1] == g.groups * g.ci && tensors.weight.shape[0] == g.groups * g.co &&
                        tensors.y.shape[0] == g.samples && tensors.y.shape[1] == g.groups * g.co;
  const bool types = tensors.weight.type == tensors.x.type && tensors.y.type == tensors.x.type;
  if (!fits || !channels || !types) {
    return invalid(spec, "an image ", tensorText(tensors.x), " and a weight ", tensorText(tensors.weight),
                   " do not give ", tensorText(tensors.y));
  }
  return absl::OkStatus();
}

absl::StatusOr<Geometry> geometryOf(const KernelSpec& spec) {
  const ConvolutionTensors tensors = convolutionTensors(spec);
  for (const TensorSpec* tensor : {&tensors.x, &tensors.weight, &tensors.y}) {
    if (tensor->shape.size() != 4) {
      return invalid(spec, "takes tensors of four dimensions, it was given ", tensorText(*tensor));
    }
  }
  const Ints& x = tensors.x.shape;
  const Ints& weight = tensors.weight.shape;
  const Ints& y = tensors.y.shape;
  const int64_t groups = weight[1] > 0 ? std::max<int64_t>(x[1] / weight[1], 1) : 1;
  Geometry g{x[0], groups, weight[1], x[2], x[3], weight[0] / groups, weight[2], weight[3], y[2], y[3], {}, {}, {}, 0};
  WEFT_RETURN_IF_ERROR(readPair(spec, "strides", 1, g.strides));
  WEFT_RETURN_IF_ERROR(readPair(spec, "paddings", 0, g.paddings));
  g.dilations[0] = g.dilations[1] = 1;
  if (spec.attributes.count("dilations") > 0) {
    WEFT_RETURN_IF_ERROR(readPair(spec, "dilations", 1, g.dilations));
  }
  WEFT_RETURN_IF_ERROR(checkShapes(spec, tensors, g));
  if (convolutionColumnBytes(tensors) >= kMostSize) {
    return invalid(spec, "the columns under one row of ", tensorText(tensors.y), " are more than any workspace holds");
  }
  g.blockRows = convolutionBlockRows(tensors);
  return g;
}

int64_t ceilDiv(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// A row of the columns matrix in one row of the block: `columns[column + q]` belongs to `image[input + (q - low) *
// stride]` for low <= q < high; for other q it lies outside the image.
struct Span {
  int64_t column;
  int64_t input;  // 0 where all lies outside
  int64_t low;
  int64_t high;
};

// Calls visit(Span) for all spans of a block.
template <typename Visit>
void forEachSpan(const Geometry& g, const Part& part, const Visit& visit) {
  int64_t column = 0;
  for (int64_t c = 0; c < g.ci; ++c) {
    for (int64_t i = 0; i < g.kh; ++i) {
      for (int64_t j = 0; j < g.kw; ++j) {
        // 0 <= q stride + shift < w.
        const int64_t shift = j * g.dilations[1] - g.paddings[1];
        const int64_t low = std::clamp<int64_t>(ceilDiv(-shift, g.strides[1]), 0, g.wo);
        const int64_t high = std::clamp<int64_t>(ceilDiv(g.w - shift, g.strides[1]), low, g.wo);
        for (int64_t r = part.first; r < part.first + part.count; ++r) {
          const int64_t row = r * g.strides[0] - g.paddings[0] + i * g.dilations[0];
          const bool inside = row >= 0 && row < g.h && low < high;
          const int64_t input = inside ? (c * g.h + row) * g.w + low * g.strides[1] + shift : 0;
          visit(Span{column, input, inside ? low : 0, inside ? high : 0});
          column += g.wo;
        }
      }
    }
  }
}

template <typename T>
void gather(const Geometry& g, const Part& part, const T* image, T* columns) {
  forEachSpan(g, part, [&](const Span& span) {
    T* to = columns + span.column;
    const T* from = image + span.input;
    std::fill_n(to, span.low, T(0));
    if (g.strides[1] == 1 && span.high > span.low) {
      std::memcpy(to + span.low, from, (span.high - span.low) * sizeof(T));
    } else {
      for (int64_t q = span.low; q < span.high; ++q) {
        to[q] = from[(q - span.low) * g.strides[1]];
      }
    }
    std::fill_n(to + span.high, g.wo - span.high, T(0));
  });
}

// Adds the columns to the image they were gathered from.
template <typename T>
void scatter(const Geometry& g, const Part& part, const T* columns, T* image) {
  forEachSpan(g, part, [&](const Span& span) {
    const T* from = columns + span.column;
    T* to = image + span.input;
    for (int64_t q = span.low; q < span.high; ++q) {
      to[(q - span.low) * g.strides[1]] += from[q];
    }
  });
}

// The products of whole blocks and of the last, shorter one.
struct Products {
  Geometry g;
  std::unique_ptr<Gemm> whole;
  std::unique_ptr<Gemm> last;

  int64_t scratchBytes() const { return std::max(whole ? whole->scratchBytes() : 0, last ? last->scratchBytes() : 0); }

  // visit(part, product) in order; stops at an error.
  template <typename Visit>
  absl::Status forEachPart(const Visit& visit) const {
    for (int64_t n = 0; n < g.samples; ++n) {
      for (int64_t group = 0; group < g.groups; ++group) {
        for (int64_t row = 0; row < g.ho; row += g.blockRows) {
          const Part part{n, group, row, std::min(g.blockRows, g.ho - row)};
          WEFT_RETURN_IF_ERROR(visit(part, part.count == g.blockRows ? *whole : *last));
        }
      }
    }
    return absl::OkStatus();
  }
};

// `shapeOf` gives the product of a block with that many places of the window.
template <typename ShapeOf>
absl::StatusOr<std::shared_ptr<Products>> productsOf(const KernelSpec& spec, const ShapeOf& shapeOf, bool plain) {
  WEFT_ASSIGN_OR_RETURN(const Geometry g, geometryOf(spec));
  auto products = std::make_shared<Products>();
  products->g = g;
  const DType type = spec.inputs[0].type;
  if (g.ho >= g.blockRows) {
    WEFT_ASSIGN_OR_RETURN(products->whole, Gemm::create(type, shapeOf(g, g.blockRows * g.wo), {.plain = plain}));
  }
  if (const int64_t rest = g.ho % g.blockRows; rest > 0) {
    WEFT_ASSIGN_OR_RETURN(products->last, Gemm::create(type, shapeOf(g, rest * g.wo), {.plain = plain}));
  }
  return products;
}

// The parts of the workspace, one behind the other.
struct Workspace {
  int64_t columns = 0;
  int64_t product = 0;
  int64_t scratch = 0;

  int64_t bytes() const { return columns + product + scratch; }
  template <typename T>
  T* columnsAt(void* workspace) const {
    return static_cast<T*>(workspace);
  }
  template <typename T>
  T* productAt(void* workspace) const {
    return reinterpret_cast<T*>(static_cast<char*>(workspace) + columns);
  }
  void* scratchAt(void* workspace) const { return static_cast<char*>(workspace) + columns + product; }
};

Workspace workspaceOf(const KernelSpec& spec, const Products& products, int64_t productBytes) {
  return {alignUp(convolutionColumnBytes(convolutionTensors(spec))), alignUp(productBytes), products.scratchBytes()};
}

template <typename T>
KernelOr conv2d(const KernelSpec& spec, bool plain) {
  const auto shapeOf = [](const Geometry& g, int64_t places) {
    return GemmShape{1, g.co, places, g.depth(), {0, g.depth(), 1}, {0, places, 1}, {0, g.ho * g.wo, 1}};
  };
  WEFT_ASSIGN_OR_RETURN(const auto products, productsOf(spec, shapeOf, plain));
  const Workspace space = workspaceOf(spec, *products, 0);
  return makeKernel(
      [products, space](const KernelArguments& args) {
        const Geometry& g = products->g;
        T* columns = space.columnsAt<T>(args.workspace);
        return products->forEachPart([&](const Part& part, Gemm& product) {
          gather(g, part, in<T>(args, 0) + g.imageAt(part), columns);
          T* y = out<T>(args, 0) + g.resultAt(part);
          return product.run(in<T>(args, 1) + g.weightAt(part), columns, y, space.scratchAt(args.workspace));
        });
      },
      space.bytes());
}

template <typename T>
KernelOr conv2dInputGrad(const KernelSpec& spec, bool plain) {
  const auto shapeOf = [](const Geometry& g, int64_t places) {
    return GemmShape{1, g.depth(), places, g.co, {0, 1, g.depth()}, {0, g.ho * g.wo, 1}, {0, places, 1}};
  };
  WEFT_ASSIGN_OR_RETURN(const auto products, productsOf(spec, shapeOf, plain));
  const Workspace space = workspaceOf(spec, *products, 0);
  return makeKernel(
      [products, space](const KernelArguments& args) {
        const Geometry& g = products->g;
        T* columns = space.columnsAt<T>(args.workspace);
        std::fill_n(out<T>(args, 0), g.samples * g.groups * g.imageSize(), T(0));
        return products->forEachPart([&](const Part& part, Gemm& product) {
          const T* weight = in<T>(args, 1) + g.weightAt(part);
          const T* dy = in<T>(args, 0) + g.resultAt(part);
          WEFT_RETURN_IF_ERROR(product.run(weight, dy, columns, space.scratchAt(args.workspace)));
          scatter(g, part, columns, out<T>(args, 0) + g.imageAt(part));
          return absl::OkStatus();
        });
      },
      space.bytes());
}

template <typename T>
KernelOr conv2dWeightGrad(const KernelSpec& spec, bool plain) {
  const auto shapeOf = [](const Geometry& g, int64_t places) {
    return GemmShape{1, g.co, g.depth(), places, {0, g.ho * g.wo, 1}, {0, 1, places}, {0, g.depth(), 1}};
  };
  WEFT_ASSIGN_OR_RETURN(const auto products, productsOf(spec, shapeOf, plain));
  const Workspace space = workspaceOf(spec, *products, spec.outputs[0].bytes());
  return makeKernel(
      [products, space](const KernelArguments& args) {
        const Geometry& g = products->g;
        T* columns = space.columnsAt<T>(args.workspace);
        T* summand = space.productAt<T>(args.workspace);
        std::fill_n(out<T>(args, 0), g.groups * g.weightSize(), T(0));
        return products->forEachPart([&](const Part& part, Gemm& product) {
          gather(g, part, in<T>(args, 0) + g.imageAt(part), columns);
          const T* dy = in<T>(args, 1) + g.resultAt(part);
          WEFT_RETURN_IF_ERROR(product.run(dy, columns, summand, space.scratchAt(args.workspace)));
          T* dweight = out<T>(args, 0) + g.weightAt(part);
          for (int64_t i = 0; i < g.weightSize(); ++i) {
            dweight[i] += summand[i];
          }
          return absl::OkStatus();
        });
      },
      space.bytes());
}

}  // namespace

void addConvolutionKernels(KernelRegistry& registry, const CpuKernelOptions& options) {
  const bool plain = options.plainMatmul;
  registry.add("conv2d", withArity({2, 1}, [plain](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type, [&]<typename T>() { return conv2d<T>(spec, plain); });
               }));
  registry.add("conv2d_input_grad", withArity({2, 1}, [plain](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type,
                                      [&]<typename T>() { return conv2dInputGrad<T>(spec, plain); });
               }));
  registry.add("conv2d_weight_grad", withArity({2, 1}, [plain](const KernelSpec& spec) {
                 return dispatchFloat(spec, spec.inputs[0].type,
                                      [&]<typename T>() { return conv2dWeightGrad<T>(spec, plain); });
               }));
}

}  // namespace weft
