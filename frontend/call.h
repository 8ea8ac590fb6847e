// One call of an operator of the API: its operands are checked in the words of the API, so that no message speaks of
// the dialect behind it.
//
//   Call call(at, "embedding", {{"table", table, Takes::kFloats}, {"ids", ids, Takes::kIds, "row numbers"}});
//   return call.ok() ? call.make("embedding", attributes) : call.undefined();
#pragma once

#include <string>
#include <vector>

#include "frontend/graph_impl.h"
#include "weft/graph.h"
#include "weft/ops.h"

namespace weft {

// Element types that an operand may have.
enum class Takes : uint8_t { kAny, kNumbers, kFloats, kIds, kBools };

struct NamedOperand {
  const char* name;
  Tensor tensor;
  Takes takes = Takes::kAny;
  const char* meaning = "";  // of ids: "class numbers"
};

class Call {
 public:
  // `function` is the name of the function of the API.
  Call(SourceLine at, std::string function, std::vector<NamedOperand> operands)
      : at_(at), function_(std::move(function)), operands_(std::move(operands)) {}

  // Do all operands belong to one graph, have types the operator takes, and agree where they have to? Else the graph
  // has the error (that of an earlier call, where that left an operand undefined).
  bool ok();

  // After ok(): makes nn.<mnemonic> of the operands; what its shapes or attributes do not allow becomes the error.
  std::vector<Tensor> makeAll(const std::string& mnemonic, const mlir::NamedAttrList& attributes = {},
                              mlir::TypeRange results = {});
  Tensor make(const std::string& mnemonic, const mlir::NamedAttrList& attributes = {}, mlir::TypeRange results = {}) {
    return makeAll(mnemonic, attributes, results).front();
  }

  // An error of this call; `text` says both values and what to do.
  Tensor fail(const std::string& text);
  // A value that an error leaves undefined.
  Tensor undefined() const { return Tensor(graph(), -1); }

  // A size of each dimension, at least 1 and not too many elements; else an error.
  bool sizes(const char* what, const Shape& shape);
  // A number in a range, ends included; else an error.
  bool isFrom(double least, double most, const char* what, double value);

  GraphImpl* graph() const;
  mlir::OpBuilder& builder() const { return graph()->builder; }

 private:
  bool belong();
  bool haveTypes();
  bool agree();

  SourceLine at_;
  std::string function_;
  std::vector<NamedOperand> operands_;
};

// "f32", "bool"; "f32 [4, 8]".
const char* typeName(Type type);
std::string describe(const Tensor& tensor);

// Why a tensor of that type cannot hold the number, "is no whole number"; "" if it can. Infinity is a float.
std::string whyNoElement(double value, Type type);

// A number as a scalar of the type of `like`, which stands beside it. Errors: NaN; what that type does not have.
Tensor scalarLike(const Tensor& like, const Operand& number, const std::string& function, SourceLine at);

}  // namespace weft
