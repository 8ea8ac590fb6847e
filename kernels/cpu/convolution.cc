// conv2d and its two gradients, over images [n, ci, h, w] (n may be several dimensions) and weights [co, ci, kh, kw],
// in as many groups of channels as the image has more channels than the weight takes.
//
// For each group, each block of results (kernels/describe/convolution.h) is one matrix product. With `columns`
// [ci kh kw, places] holding what lies under each place of the window:
//
//   conv2d              y block = weight [co, ci kh kw] columns
//   conv2d_input_grad   columns = weight^T (dy block), then added to dx where they came from
//   conv2d_weight_grad  dweight += (dy block) columns^T
//
// Products are oneDNN's for f32, own loops for f64 and where asked. The library's own convolutions would want their
// tensors in formats of their own, and a copy there and back for every call. Sums over samples and blocks are taken in
// their order, so a result depends on the local data and shapes alone.
//
// Small images give products of few columns, and spans of few elements to gather. So several samples make one block:
// image and result are packed with samples innermost, [ci, h, w, samples] and [co, ho, wo, samples], and what is one
// element of one image is as many of the block.

#include "kernels/describe/convolution.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/cpu/families.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loops.h"
#include "kernels/cpu/support.h"

namespace weft {
namespace {

using namespace cpu;  // NOLINT

// What one product computes, of one group: rows `first` to `first + count` of the result of one sample, or all rows of
// some samples.
struct Part {
  int64_t sample;  // the first
  int64_t samples;
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
  ConvolutionBlock block;

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
  // Are the images of a block packed, samples innermost?
  bool packs() const { return block.samples > 1; }
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
  Geometry g{x[0], groups, weight[1], x[2], x[3], weight[0] / groups, weight[2], weight[3], y[2], y[3], {}, {}, {}, {}};
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
  g.block = convolutionBlock(tensors);
  return g;
}

int64_t ceilDiv(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// A row of the columns matrix in one row of the block: `columns[column + q]` belongs to `image[input + (q - low) *
// stride]` for low <= q < high; for other q it lies outside the image. All in places, each of as many elements as the
// part has samples.
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

// Calls visit(columns, image, elements) for all contiguous elements of a span.
template <typename To, typename From, typename Visit>
void forEachRun(const Geometry& g, const Part& part, const Span& span, To* columns, From* image, const Visit& visit) {
  const int64_t width = part.samples;
  columns += (span.column + span.low) * width;
  image += span.input * width;
  if (g.strides[1] == 1) {
    visit(columns, image, (span.high - span.low) * width);
    return;
  }
  const int64_t places = span.high - span.low;
  if (width == 1) {  // a count that the compiler knows: no call for each element
    for (int64_t q = 0; q < places; ++q) {
      visit(columns + q, image + q * g.strides[1], 1);
    }
    return;
  }
  for (int64_t q = 0; q < places; ++q) {
    visit(columns + q * width, image + q * g.strides[1] * width, width);
  }
}

template <typename T>
void gather(const Geometry& g, const Part& part, const T* image, T* columns) {
  forEachSpan(g, part, [&](const Span& span) {
    const int64_t width = part.samples;
    std::fill_n(columns + span.column * width, span.low * width, T(0));
    forEachRun(g, part, span, columns, image,
               [](T* to, const T* from, int64_t count) { std::copy_n(from, count, to); });
    std::fill_n(columns + (span.column + span.high) * width, (g.wo - span.high) * width, T(0));
  });
}

// Adds the columns to the image they were gathered from.
template <typename T>
void scatter(const Geometry& g, const Part& part, const T* columns, T* image) {
  forEachSpan(g, part, [&](const Span& span) {
    forEachRun(g, part, span, columns, image, [](const T* from, T* to, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        to[i] += from[i];
      }
    });
  });
}

// One size of block: its product, and how its images are packed where they are.
template <typename T>
struct BlockKernel {
  std::unique_ptr<Gemm> product;
  StridedCopy<T> packImage, packResult;      // of one group of the samples
  StridedCopy<T> unpackImage, unpackResult;  // the same back
};

// Samples that lie `all` elements apart, of `size` elements each, as [size, samples].
template <typename T>
StridedCopy<T> packing(int64_t samples, int64_t size, int64_t all) {
  return {{size, samples}, {1, all}, {samples, 1}};
}
template <typename T>
StridedCopy<T> unpacking(int64_t samples, int64_t size, int64_t all) {
  return {{size, samples}, {samples, 1}, {1, all}};
}

// The products of a convolution, and the parts of the workspace, one behind the other.
template <typename T>
class Blocks {
 public:
  // `shapeOf` gives the product of a block with that many places of the window, whose rows of the result lie as many
  // elements apart as it is told.
  template <typename ShapeOf>
  static absl::StatusOr<std::shared_ptr<Blocks>> create(const KernelSpec& spec, const ShapeOf& shapeOf, bool plain) {
    auto blocks = std::make_shared<Blocks>();
    WEFT_ASSIGN_OR_RETURN(blocks->g_, geometryOf(spec));
    const Geometry& g = blocks->g_;
    const auto blockOf = [&](int64_t samples, int64_t rows) -> absl::StatusOr<std::unique_ptr<BlockKernel<T>>> {
      const int64_t places = samples * rows * g.wo;
      WEFT_ASSIGN_OR_RETURN(
          std::unique_ptr<Gemm> product,
          Gemm::create(spec.inputs[0].type, shapeOf(g, places, g.packs() ? places : g.ho * g.wo), {.plain = plain}));
      const int64_t image = g.imageSize(), result = g.resultSize();
      return std::make_unique<BlockKernel<T>>(
          BlockKernel<T>{std::move(product), packing<T>(samples, image, g.groups * image),
                         packing<T>(samples, result, g.groups * result), unpacking<T>(samples, image, g.groups * image),
                         unpacking<T>(samples, result, g.groups * result)});
    };
    if (g.samples >= g.block.samples && g.ho >= g.block.rows) {
      WEFT_ASSIGN_OR_RETURN(blocks->whole_, blockOf(g.block.samples, g.block.rows));
    }
    const int64_t restSamples = g.samples % g.block.samples;
    const int64_t restRows = g.ho % g.block.rows;
    if (restSamples > 0 || restRows > 0) {
      WEFT_ASSIGN_OR_RETURN(blocks->last_,
                            blockOf(g.packs() ? restSamples : 1, restRows > 0 ? restRows : g.block.rows));
    }
    const ConvolutionTensors tensors = convolutionTensors(spec);
    const ConvolutionPackedBytes packed = convolutionPackedBytes(tensors);
    blocks->image_ = alignUp(convolutionColumnBytes(tensors));
    blocks->result_ = blocks->image_ + alignUp(packed.image);
    blocks->summand_ = blocks->result_ + alignUp(packed.result);
    blocks->scratch_ = blocks->summand_ + (spec.name == "conv2d_weight_grad" ? alignUp(spec.outputs[0].bytes()) : 0);
    return blocks;
  }

  const Geometry& geometry() const { return g_; }
  int64_t workspaceBytes() const {
    return scratch_ +
           std::max(whole_ ? whole_->product->scratchBytes() : 0, last_ ? last_->product->scratchBytes() : 0);
  }

  T* columns(void* workspace) const { return static_cast<T*>(workspace); }
  T* summand(void* workspace) const { return at(workspace, summand_); }
  void* scratch(void* workspace) const { return at(workspace, scratch_); }
  // Of a part, packed: where it is kept.
  T* packedImage(void* workspace) const { return at(workspace, image_); }
  T* packedResult(void* workspace) const { return at(workspace, result_); }

  // The part of all images, packed or where it lies.
  const T* image(const Part& part, const BlockKernel<T>& block, const T* images, void* workspace) const {
    return packed(block.packImage, images + g_.imageAt(part), packedImage(workspace));
  }
  const T* result(const Part& part, const BlockKernel<T>& block, const T* results, void* workspace) const {
    return packed(block.packResult, results + g_.resultAt(part), packedResult(workspace));
  }

  // visit(part, block) in order; stops at an error.
  template <typename Visit>
  absl::Status forEachPart(const Visit& visit) const {
    for (int64_t n = 0; n < g_.samples; n += g_.block.samples) {
      const int64_t samples = std::min(g_.block.samples, g_.samples - n);
      for (int64_t group = 0; group < g_.groups; ++group) {
        for (int64_t row = 0; row < g_.ho; row += g_.block.rows) {
          const Part part{n, samples, group, row, std::min(g_.block.rows, g_.ho - row)};
          const bool isWhole = samples == g_.block.samples && part.count == g_.block.rows;
          WEFT_RETURN_IF_ERROR(visit(part, isWhole ? *whole_ : *last_));
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  const T* packed(const StridedCopy<T>& pack, const T* from, T* to) const {
    if (!g_.packs()) {
      return from;
    }
    pack.run(from, to);
    return to;
  }

  T* at(void* workspace, int64_t offset) const { return reinterpret_cast<T*>(static_cast<char*>(workspace) + offset); }

  Geometry g_{};
  std::unique_ptr<BlockKernel<T>> whole_;
  std::unique_ptr<BlockKernel<T>> last_;  // of fewer samples or rows
  int64_t image_ = 0, result_ = 0, summand_ = 0, scratch_ = 0;
};

template <typename T>
KernelOr conv2d(const KernelSpec& spec, bool plain) {
  const auto shapeOf = [](const Geometry& g, int64_t places, int64_t resultRow) {
    return GemmShape{1, g.co, places, g.depth(), {0, g.depth(), 1}, {0, places, 1}, {0, resultRow, 1}};
  };
  WEFT_ASSIGN_OR_RETURN(const auto blocks, Blocks<T>::create(spec, shapeOf, plain));
  return makeKernel(
      [blocks](const KernelArguments& args) {
        const Geometry& g = blocks->geometry();
        T* columns = blocks->columns(args.workspace);
        return blocks->forEachPart([&](const Part& part, const BlockKernel<T>& block) {
          gather(g, part, blocks->image(part, block, in<T>(args, 0), args.workspace), columns);
          T* y = out<T>(args, 0) + g.resultAt(part);
          T* made = g.packs() ? blocks->packedResult(args.workspace) : y;
          WEFT_RETURN_IF_ERROR(
              block.product->run(in<T>(args, 1) + g.weightAt(part), columns, made, blocks->scratch(args.workspace)));
          if (g.packs()) {
            block.unpackResult.run(made, y);
          }
          return absl::OkStatus();
        });
      },
      blocks->workspaceBytes());
}

template <typename T>
KernelOr conv2dInputGrad(const KernelSpec& spec, bool plain) {
  const auto shapeOf = [](const Geometry& g, int64_t places, int64_t resultRow) {
    return GemmShape{1, g.depth(), places, g.co, {0, 1, g.depth()}, {0, resultRow, 1}, {0, places, 1}};
  };
  WEFT_ASSIGN_OR_RETURN(const auto blocks, Blocks<T>::create(spec, shapeOf, plain));
  return makeKernel(
      [blocks](const KernelArguments& args) {
        const Geometry& g = blocks->geometry();
        T* columns = blocks->columns(args.workspace);
        return blocks->forEachPart([&](const Part& part, const BlockKernel<T>& block) {
          const T* weight = in<T>(args, 1) + g.weightAt(part);
          const T* dy = blocks->result(part, block, in<T>(args, 0), args.workspace);
          WEFT_RETURN_IF_ERROR(block.product->run(weight, dy, columns, blocks->scratch(args.workspace)));
          T* dx = out<T>(args, 0) + g.imageAt(part);
          T* made = g.packs() ? blocks->packedImage(args.workspace) : dx;
          if (part.first == 0) {
            std::fill_n(made, part.samples * g.imageSize(), T(0));
          }
          scatter(g, part, columns, made);
          if (g.packs()) {
            block.unpackImage.run(made, dx);
          }
          return absl::OkStatus();
        });
      },
      blocks->workspaceBytes());
}

template <typename T>
KernelOr conv2dWeightGrad(const KernelSpec& spec, bool plain) {
  const auto shapeOf = [](const Geometry& g, int64_t places, int64_t resultRow) {
    return GemmShape{1, g.co, g.depth(), places, {0, resultRow, 1}, {0, 1, places}, {0, g.depth(), 1}};
  };
  WEFT_ASSIGN_OR_RETURN(const auto blocks, Blocks<T>::create(spec, shapeOf, plain));
  return makeKernel(
      [blocks](const KernelArguments& args) {
        const Geometry& g = blocks->geometry();
        T* columns = blocks->columns(args.workspace);
        T* summand = blocks->summand(args.workspace);
        std::fill_n(out<T>(args, 0), g.groups * g.weightSize(), T(0));
        return blocks->forEachPart([&](const Part& part, const BlockKernel<T>& block) {
          gather(g, part, blocks->image(part, block, in<T>(args, 0), args.workspace), columns);
          const T* dy = blocks->result(part, block, in<T>(args, 1), args.workspace);
          WEFT_RETURN_IF_ERROR(block.product->run(dy, columns, summand, blocks->scratch(args.workspace)));
          T* dweight = out<T>(args, 0) + g.weightAt(part);
          for (int64_t i = 0; i < g.weightSize(); ++i) {
            dweight[i] += summand[i];
          }
          return absl::OkStatus();
        });
      },
      blocks->workspaceBytes());
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
