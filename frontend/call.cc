#include "frontend/call.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft {

namespace {

bool isFloat(Type type) {
  return type == Type::kF32 || type == Type::kF64;
}

bool isInteger(Type type) {
  return type == Type::kI32 || type == Type::kI64;
}

bool fits(Type type, Takes takes) {
  switch (takes) {
    case Takes::kAny:
      return true;
    case Takes::kNumbers:
      return type != Type::kBool;
    case Takes::kFloats:
      return isFloat(type);
    case Takes::kIds:
      return isInteger(type);
    case Takes::kBools:
      return type == Type::kBool;
  }
  return false;
}

std::string castTo(const std::string& name, Type type) {
  const char* target = type == Type::kI32   ? "kI32"
                       : type == Type::kI64 ? "kI64"
                       : type == Type::kF64 ? "kF64"
                       : type == Type::kF32 ? "kF32"
                                            : "kBool";
  return absl::StrCat("weft::cast(", name, ", weft::", target, ")");
}

// What is wanted of an operand, and how to make it so.
std::string wanted(const NamedOperand& operand) {
  const std::string what = *operand.meaning != '\0' ? operand.meaning : "it";
  switch (operand.takes) {
    case Takes::kFloats:
      return absl::StrCat(what, what == "it" ? " has" : " have", " to be f32 or f64; cast it, ",
                          castTo(operand.name, Type::kF32));
    case Takes::kIds:
      return absl::StrCat(what, what == "it" ? " has" : " have", " to be i32 or i64; cast it, ",
                          castTo(operand.name, Type::kI32));
    case Takes::kBools:
      return "it has to be bool, as weft::compare gives";
    case Takes::kNumbers:
    case Takes::kAny:
      break;
  }
  return absl::StrCat("it has to be numbers, no bool; cast it, ", castTo(operand.name, Type::kF32));
}

// Operands of these kinds have one element type in one call.
bool agrees(Takes takes) {
  return takes == Takes::kAny || takes == Takes::kNumbers || takes == Takes::kFloats;
}

// Scalars are held in 64 bits of floating point, which have these whole numbers.
constexpr double kMostWhole = 9007199254740992.0;

}  // namespace

std::string whyNoElement(double value, Type type) {
  if (std::isnan(value)) {
    return "is no number";
  }
  if (isFloat(type)) {
    const bool tooLarge =
        type == Type::kF32 && std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max();
    return tooLarge ? "is too large for f32" : "";
  }
  const double most = type == Type::kBool ? 1 : type == Type::kI32 ? std::numeric_limits<int32_t>::max() : kMostWhole;
  const double least = type == Type::kBool ? 0 : -most - (type == Type::kI32 ? 1 : 0);
  if (std::trunc(value) != value) {
    return "is no whole number";
  }
  return value < least || value > most ? absl::StrCat("is not from ", least, " to ", most) : "";
}

const char* typeName(Type type) {
  switch (type) {
    case Type::kF32:
      return "f32";
    case Type::kF64:
      return "f64";
    case Type::kI32:
      return "i32";
    case Type::kI64:
      return "i64";
    case Type::kBool:
      return "bool";
  }
  return "";
}

std::string describe(const Tensor& tensor) {
  return absl::StrCat(typeName(tensor.type()), " [", absl::StrJoin(tensor.shape(), ", "), "]");
}

GraphImpl* Call::graph() const {
  for (const NamedOperand& operand : operands_) {
    if (operand.tensor.graph() != nullptr) {
      return operand.tensor.graph();
    }
  }
  return nullptr;
}

Tensor Call::fail(const std::string& text) {
  return graph() != nullptr ? graph()->fail(at_, absl::StrCat(function_, ": ", text)) : Tensor();
}

bool Call::ok() {
  return graph() != nullptr && belong() && haveTypes() && agree();
}

bool Call::belong() {
  for (const NamedOperand& operand : operands_) {
    if (operand.tensor.graph() == graph() && operand.tensor.id() < 0 && !graph()->status.ok()) {
      return false;  // an earlier error left it undefined
    }
    if (operand.tensor.graph() != graph() || operand.tensor.id() < 0) {
      fail(absl::StrCat("operand ", operand.name, " belongs to no graph or to another one; take tensors of one graph"));
      return false;
    }
  }
  return true;
}

bool Call::haveTypes() {
  for (const NamedOperand& operand : operands_) {
    const Type type = operand.tensor.type();
    if (fits(type, operand.takes)) {
      continue;
    }
    std::string text =
        absl::StrCat("operand ", operand.name, " is ", describe(operand.tensor), ", but ", wanted(operand));
    for (const NamedOperand& other : operands_) {
      if (other.takes != operand.takes && fits(type, other.takes) && fits(other.tensor.type(), operand.takes)) {
        absl::StrAppend(&text, " (operand ", other.name, " is ", describe(other.tensor),
                        ": were the operands swapped?)");
      }
    }
    fail(text);
    return false;
  }
  return true;
}

bool Call::agree() {
  const NamedOperand* first = nullptr;
  for (const NamedOperand& operand : operands_) {
    if (!agrees(operand.takes)) {
      continue;
    }
    first = first == nullptr ? &operand : first;
    if (operand.tensor.type() != first->tensor.type()) {
      // Towards floats: a cast to integers loses what is behind the point.
      const bool left = isFloat(operand.tensor.type()) && !isFloat(first->tensor.type());
      const NamedOperand& changed = left ? *first : operand;
      const NamedOperand& kept = left ? operand : *first;
      fail(absl::StrCat("operand ", first->name, " is ", describe(first->tensor), " and operand ", operand.name, " ",
                        describe(operand.tensor), "; they need one element type: cast one of them, ",
                        castTo(changed.name, kept.tensor.type())));
      return false;
    }
  }
  return true;
}

std::vector<Tensor> Call::makeAll(const std::string& mnemonic, const mlir::NamedAttrList& attributes,
                                  mlir::TypeRange results) {
  std::vector<Tensor> tensors;
  for (const NamedOperand& operand : operands_) {
    tensors.push_back(operand.tensor);
  }
  return graph()->createAll({at_, function_, mnemonic}, tensors, attributes, results);
}

bool Call::sizes(const char* what, const Shape& shape) {
  const std::string error = GraphImpl::sizesError(shape);
  if (!error.empty()) {
    fail(absl::StrCat(what, " [", absl::StrJoin(shape, ", "), "] ", error));
  }
  return error.empty();
}

bool Call::isFrom(double least, double most, const char* what, double value) {
  const bool inside = value >= least && value <= most;  // NaN is not
  if (!inside) {
    fail(absl::StrCat(what, " = ", value, "; give a number from ", least, " to ", most));
  }
  return inside;
}

Tensor scalarLike(const Tensor& like, const Operand& number, const std::string& function, SourceLine at) {
  if (!like.valid()) {
    return like;
  }
  GraphImpl& graph = *like.graph();
  if (const std::string error = whyNoElement(number.number(), like.type()); !error.empty()) {
    return graph.fail(at, absl::StrCat(function, ": ", number.number(), " ", error, ", and stands beside ",
                                       describe(like), "; write another number, or cast the tensor"));
  }
  mlir::NamedAttrList attrs;
  attrs.set("value", graph.builder.getF64FloatAttr(number.number()));
  const mlir::Type type = mlir::RankedTensorType::get({}, graph.elementType(like.type()));
  return graph.create({at, function, "fill"}, {}, attrs, type);
}

}  // namespace weft
