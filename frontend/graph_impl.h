// What stands behind Graph and Tensor: an MLIR module under construction.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "weft/graph.h"

namespace weft {

// An operator of the API and of the dialect, and the call that makes it.
struct OperatorName {
  SourceLine at;
  std::string function;  // of the API
  std::string mnemonic;  // of the dialect, without "nn."
};

class GraphImpl {
 public:
  GraphImpl();

  mlir::Location location(SourceLine at);
  // Remembers the first error, as "file:line: error: text", with the modules whose calls are in progress.
  Tensor fail(SourceLine at, const std::string& text);
  // Why a tensor cannot have this shape; "" if it can.
  static std::string sizesError(const Shape& shape);

  // Creates the operator on tensors of this graph; results are inferred unless given. Any diagnostic becomes the
  // graph's error, in the name of the function of the API.
  std::vector<Tensor> createAll(const OperatorName& name, const std::vector<Tensor>& operands,
                                mlir::NamedAttrList attributes = {}, mlir::TypeRange results = {});
  Tensor create(const OperatorName& name, const std::vector<Tensor>& operands, mlir::NamedAttrList attributes = {},
                mlir::TypeRange results = {});

  Tensor add(mlir::Value value);
  mlir::Value value(const Tensor& tensor) const { return values_[tensor.id()]; }
  mlir::Type elementType(Type type);
  static Type typeOf(mlir::Value value);
  Tensor addArgument(SourceLine at, const std::string& name, const Shape& shape, Type type, mlir::NamedAttrList attrs);
  // See Graph::constant.
  Tensor constant(SourceLine at, const Shape& shape, const std::vector<double>& values, Type type);
  // An existing argument by name.
  Tensor findArgument(const std::string& name);
  void addOutput(SourceLine at, const std::string& name, const Tensor& value);
  bool isOutput(const std::string& name) const;
  // See Graph::assign.
  void assign(SourceLine at, const Tensor& target, const Tensor& value, const AssignOptions& options = {});
  // See Graph::update; of one parameter.
  void update(SourceLine at, const Tensor& parameter, const Tensor& gradient, const Optimizer& optimizer);

  // Without threads: a few functions are all there is to share out, and a system that gives none ends the process.
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp step;
  mlir::OpBuilder builder;
  std::vector<std::string> scopes;
  std::vector<int> stages;
  std::vector<std::string> modules;  // whose calls are in progress
  std::vector<int64_t> recomputes;   // numbers of the scopes around
  int64_t recomputeScopes = 0;
  std::vector<std::pair<std::string, Tensor>> outputs;
  struct Assignment {
    unsigned argument = 0;
    Tensor value;
    AssignOptions options;
  };
  std::vector<Assignment> assignments;
  struct Update {
    unsigned argument = 0;
    Tensor gradient;
    Optimizer optimizer;
  };
  std::vector<Update> updates;
  absl::Status status;
  Type parameterType = Type::kF32;
  int64_t dropouts = 0;

  // The gradient of an own operator as a function of the module, which returns those of the operands `of`.
  struct OwnGradientFunction {
    std::string name;
    std::vector<int64_t> of;
  };
  // By operator, types and attributes; none while it is being written.
  std::map<std::string, std::optional<OwnGradientFunction>> ownGradients;

  std::string scoped(const std::string& name) const;
  // Why the step cannot give the argument another value; "" if it can.
  std::string replacementError(const Argument& named);
  // Of the operator that made the tensor, with all scopes in it.
  void setName(const Tensor& tensor, const std::string& name);
  // Removes the operator that was made last, and its results.
  void discardLast();
  // "file:line" of the call that made it.
  std::string placeOf(const Tensor& tensor) const;

  // While it lives, operators of the graph are made where another builder makes them, without the scopes around; values
  // and errors that arise meanwhile are forgotten after.
  class Elsewhere {
   public:
    Elsewhere(GraphImpl& graph, mlir::OpBuilder& builder);
    ~Elsewhere();
    Elsewhere(const Elsewhere&) = delete;
    Elsewhere& operator=(const Elsewhere&) = delete;

   private:
    GraphImpl& graph_;
    mlir::OpBuilder builder_;  // the graph's own
    size_t values_;
    absl::Status status_;
    std::vector<std::string> scopes_;
    std::vector<int> stages_;
    std::vector<int64_t> recomputes_;
  };

 private:
  std::vector<mlir::Value> values_;
};

}  // namespace weft
