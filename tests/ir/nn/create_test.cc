// Operators by name: what is inferred, and what is refused with a message instead of a crash.
#include "ir/nn/create.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/nn/kernel_attributes.h"
#include "ir/nn/nn.h"
#include "mlir/IR/Diagnostics.h"
#include "tests/support/parse.h"

namespace weft::testing {
namespace {

class CreateTest : public ::testing::Test {
 protected:
  CreateTest()
      : builder_(modules_.context()),
        location_(builder_.getUnknownLoc()),
        module_(mlir::ModuleOp::create(location_)),
        handler_(modules_.context(), [this](mlir::Diagnostic& diagnostic) {
          message_ += diagnostic.str() + "\n";
          return mlir::success();
        }) {
    builder_.setInsertionPointToStart(module_->getBody());
  }

  mlir::Value tensor(llvm::ArrayRef<int64_t> shape) {
    return builder_.create<ir::nn::FillOp>(location_, mlir::RankedTensorType::get(shape, builder_.getF32Type()), 0.0);
  }

  mlir::FailureOr<mlir::Operation*> create(llvm::StringRef mnemonic, mlir::ValueRange operands,
                                           mlir::NamedAttrList attributes = {}, mlir::TypeRange results = {}) {
    return ir::createOperator(builder_, location_, mnemonic, operands, std::move(attributes), results);
  }

  mlir::NamedAttrList attributes(llvm::StringRef name, mlir::Attribute value) {
    mlir::NamedAttrList list;
    list.set(name, value);
    return list;
  }

  Modules modules_;
  mlir::OpBuilder builder_;
  mlir::Location location_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::string message_;
  mlir::ScopedDiagnosticHandler handler_;
};

TEST_F(CreateTest, InfersAndFillsDefaults) {
  auto op = create("matmul", {tensor({2, 3}), tensor({3, 4})});
  ASSERT_TRUE(mlir::succeeded(op)) << message_;
  EXPECT_EQ(ir::shapeOf((*op)->getResult(0)), (Shape{2, 4}));
  AttributeMap map = ir::kernelAttributes(*op);
  EXPECT_EQ(std::get<int64_t>(map.at("transpose_a")), 0);
}

TEST_F(CreateTest, InferenceSeesAttributes) {
  auto op = create("matmul", {tensor({3, 2}), tensor({3, 4})}, attributes("transpose_a", builder_.getBoolAttr(true)));
  ASSERT_TRUE(mlir::succeeded(op)) << message_;
  EXPECT_EQ(ir::shapeOf((*op)->getResult(0)), (Shape{2, 4}));
}

TEST_F(CreateTest, GivenResultTypes) {
  auto type = mlir::RankedTensorType::get({6}, builder_.getF32Type());
  EXPECT_TRUE(mlir::succeeded(create("reshape", {tensor({2, 3})}, {}, {type}))) << message_;
  EXPECT_TRUE(mlir::failed(create("reshape", {tensor({2, 2})}, {}, {type})));
  EXPECT_THAT(message_, ::testing::HasSubstr("nn.reshape (2)"));
}

TEST_F(CreateTest, RefusesWithAMessage) {
  EXPECT_TRUE(mlir::failed(create("matmull", {tensor({2, 3})})));
  EXPECT_THAT(message_, ::testing::HasSubstr("there is no operator nn.matmull"));
  EXPECT_TRUE(mlir::failed(create("matmul", {tensor({2, 3})})));
  EXPECT_THAT(message_, ::testing::HasSubstr("nn.matmul takes 2 operands, not 1"));
  EXPECT_TRUE(mlir::failed(create("matmul", {tensor({2, 3}), tensor({4, 4})})));
  EXPECT_THAT(message_, ::testing::HasSubstr("nn.matmul (3): k is 3 in a (2x3xf32) and 4 in b (4x4xf32)"));
  EXPECT_TRUE(mlir::failed(create("sum", {tensor({2, 3})})));
  EXPECT_THAT(message_, ::testing::HasSubstr("nn.sum needs the attribute 'dims'"));
  EXPECT_TRUE(mlir::failed(create("sum", {tensor({2, 3})}, attributes("dims", builder_.getStringAttr("0")))));
  EXPECT_THAT(message_, ::testing::HasSubstr("attribute 'dims' failed to satisfy constraint"));
  EXPECT_TRUE(mlir::failed(create("reshape", {tensor({2, 3})})));
  EXPECT_THAT(message_, ::testing::HasSubstr("nn.reshape needs its result type"));
  EXPECT_TRUE(mlir::failed(create("sgd", {tensor({2})})));
  EXPECT_THAT(message_, ::testing::HasSubstr("nn.sgd takes at least 4 operands, not 1"));
  EXPECT_TRUE(mlir::failed(
      create("embedding", {tensor({2, 3}), tensor({2})}, attributes("rows", builder_.getI64IntegerAttr(2)))));
  EXPECT_THAT(message_, ::testing::HasSubstr("operand #1 must be statically shaped tensor"));
}

TEST_F(CreateTest, KernelAttributes) {
  auto list = attributes("dims", builder_.getDenseI64ArrayAttr({0, 1}));
  list.set("nn.id", builder_.getI64IntegerAttr(3));
  auto op = create("sum", {tensor({2, 3})}, list);
  ASSERT_TRUE(mlir::succeeded(op)) << message_;
  AttributeMap map = ir::kernelAttributes(*op);
  EXPECT_EQ(std::get<std::vector<int64_t>>(map.at("dims")), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(std::get<int64_t>(map.at("keep_dims")), 0);
  EXPECT_EQ(map.count("nn.id"), 0u);
}

// An attribute that the text leaves out has its default value for the kernel too.
TEST_F(CreateTest, KernelAttributesOfParsedText) {
  auto module = modules_.parse(R"(func.func @f(%x: tensor<2xf32>) {
    %0 = nn.gelu %x : (tensor<2xf32>) -> tensor<2xf32>
    return
  })");
  ASSERT_TRUE(module) << message_;
  auto function = *module->getOps<mlir::func::FuncOp>().begin();
  AttributeMap map = ir::kernelAttributes(&function.getBody().front().front());
  EXPECT_EQ(std::get<std::string>(map.at("approximate")), "tanh");
}

}  // namespace
}  // namespace weft::testing
