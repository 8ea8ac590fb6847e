#include "tests/passes/plan/memory_oracle.h"

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "ir/dist/dist.h"
#include "ir/nn/nn.h"
#include "kernels/describe/describe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/exec/instruction_spec.h"

namespace weft::testing {
namespace {

using Token = uint64_t;

Token mix(Token a, Token b) {
  return (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0x100000001b3ull;
}
Token tokenOf(const std::string& text) {
  return std::hash<std::string>()(text);
}
// What the host writes before a step.
Token inputToken(const std::string& name, int step) {
  return mix(tokenOf("input " + name), step);
}

// The elements of a constant, one after another.
std::string bytesOf(ir::nn::ConstantOp op) {
  auto elements = mlir::cast<mlir::DenseElementsAttr>(op.getValue());
  const int64_t count = mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType()).getNumElements();
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = elements.isSplat() ? 0 : i;
    const llvm::APInt bits = mlir::isa<mlir::FloatType>(elements.getElementType())
                                 ? (*(elements.value_begin<llvm::APFloat>() + at)).bitcastToAPInt()
                                 : *(elements.value_begin<llvm::APInt>() + at);
    for (unsigned byte = 0; byte * 8 < bits.getBitWidth(); ++byte) {
      bytes.push_back(static_cast<char>(bits.lshr(8 * byte).getZExtValue() & 0xff));
    }
  }
  return bytes;
}

// The program.
class ProgramSide {
 public:
  explicit ProgramSide(mlir::ModuleOp module) : module_(module) {}

  std::map<std::string, Token> names;

  void run(const std::string& function, int64_t microBatch) {
    auto op = module_.lookupSymbol<mlir::func::FuncOp>(function);
    values_.clear();
    for (unsigned i = 0; i < op.getNumArguments(); ++i) {
      values_[op.getArgument(i)] = names[op.getArgAttrOfType<mlir::StringAttr>(i, "dist.value").str()];
    }
    for (mlir::Operation& inner : op.getBody().front().without_terminator()) {
      compute(&inner, microBatch);
    }
    std::map<std::string, Token> results;
    for (unsigned i = 0; i < op.getNumResults(); ++i) {
      results[op.getResultAttrOfType<mlir::StringAttr>(i, "dist.value").str()] =
          values_[op.getBody().front().getTerminator()->getOperand(i)];
    }
    for (const auto& [name, token] : results) {
      names[name] = token;
    }
  }

 private:
  void compute(mlir::Operation* op, int64_t microBatch) {
    if (auto constant = mlir::dyn_cast<ir::nn::ConstantOp>(op)) {
      values_[op->getResult(0)] = tokenOf(bytesOf(constant));
    } else if (mlir::isa<ir::nn::ReshapeOp>(op)) {
      values_[op->getResult(0)] = values_[op->getOperand(0)];
    } else if (mlir::isa<ir::dist::AccumulateOp>(op) && microBatch == 0) {
      values_[op->getResult(0)] = values_[op->getOperand(1)];
    } else if (mlir::isa<ir::dist::ContractAccumulateOp>(op) && microBatch == 0) {
      made(op, op->getOperands().drop_front());
    } else {
      made(op, op->getOperands());
    }
  }

  // The results of an operator that reads these.
  void made(mlir::Operation* op, mlir::ValueRange operands) {
    Token token = tokenOf(op->getAttrOfType<mlir::StringAttr>("nn.name").str());
    for (mlir::Value operand : operands) {
      token = mix(token, values_[operand]);
    }
    for (mlir::OpResult result : op->getResults()) {
      values_[result] = mix(token, result.getResultNumber());
    }
  }

  mlir::ModuleOp module_;
  llvm::DenseMap<mlir::Value, Token> values_;
};

// The plan.
class PlanSide {
 public:
  explicit PlanSide(const plan::Plan& plan) : plan_(plan) {
    for (const plan::Region& region : plan.memory().regions()) {
      slots_[{region.memory(), region.ring()}] = region.slots();
      for (int64_t slot = 0; slot < region.slots(); ++slot) {
        memory_[{region.memory(), region.ring(), slot}].assign(region.bytes(), {poison(), 0});
      }
    }
    for (const plan::Buffer& buffer : plan.buffers()) {
      if (!buffer.data().empty()) {
        write(buffer, tokenOf(buffer.data()), 0);
      }
    }
  }

  void write(const plan::Buffer& buffer, Token token, int64_t microBatch) {
    std::vector<Byte>& bytes = bytesFor(buffer, microBatch);
    for (int64_t i = 0; i < buffer.bytes(); ++i) {
      bytes[buffer.offset() + i] = {token, i};
    }
  }

  Token read(const plan::Buffer& buffer, int64_t microBatch) {
    const std::vector<Byte>& bytes = bytesFor(buffer, microBatch);
    const Token token = bytes[buffer.offset()].token;
    for (int64_t i = 0; i < buffer.bytes(); ++i) {
      if (bytes[buffer.offset() + i].token != token || bytes[buffer.offset() + i].place != i) {
        return poison();
      }
    }
    return token;
  }

  void run(const plan::Function& function, int64_t microBatch) {
    for (const plan::Instruction& instruction : function.instructions()) {
      runInstruction(instruction, microBatch);
    }
  }

 private:
  struct Byte {
    Token token;
    int64_t place;
  };

  std::vector<Byte>& bytesFor(const plan::Buffer& buffer, int64_t microBatch) {
    return memory_[{buffer.memory(), buffer.ring(), microBatch % slots_[{buffer.memory(), buffer.ring()}]}];
  }

  Token poison() { return mix(tokenOf("poison"), ++poisoned_); }
  const plan::Buffer& buffer(const plan::Operand& operand) const {
    return plan_.buffers(static_cast<int>(operand.buffer()));
  }

  void runInstruction(const plan::Instruction& instruction, int64_t microBatch) {
    std::vector<Token> inputs;
    for (const plan::Operand& operand : instruction.inputs()) {
      inputs.push_back(read(buffer(operand), microBatch));
    }
    std::vector<Token> outputs;
    for (int i = 0; i < instruction.outputs_size(); ++i) {
      outputs.push_back(result(instruction, i, inputs, microBatch));
    }
    for (int i = 0; i < instruction.outputs_size(); ++i) {
      write(buffer(instruction.outputs(i)), outputs[i], microBatch);
    }
  }

  Token result(const plan::Instruction& instruction, int index, const std::vector<Token>& inputs, int64_t microBatch) {
    if (!writesSafely(instruction, index)) {
      return poison();
    }
    if (instruction.kernel() == "reshape") {
      return inputs[0];
    }
    if (instruction.kernel() == "accumulate" && microBatch == 0) {
      return inputs[1];
    }
    // The sum so far is there after micro-batch 0.
    const bool startsSum = instruction.kernel() == "contract_accumulate" && microBatch == 0;
    Token token = tokenOf(instruction.label());
    for (size_t i = startsSum ? 1 : 0; i < inputs.size(); ++i) {
      token = mix(token, inputs[i]);
    }
    return mix(token, index);
  }

  static bool overlap(const plan::Buffer& a, const plan::Buffer& b) {
    return a.memory() == b.memory() && a.ring() == b.ring() && a.offset() < b.offset() + b.bytes() &&
           b.offset() < a.offset() + a.bytes();
  }

  bool writesSafely(const plan::Instruction& instruction, int index) const {
    const plan::Buffer& out = buffer(instruction.outputs(index));
    for (int other = 0; other < instruction.outputs_size(); ++other) {
      if (other != index && overlap(out, buffer(instruction.outputs(other)))) {
        return false;
      }
    }
    int overlapping = 0;
    for (int i = 0; i < instruction.inputs_size(); ++i) {
      const plan::Buffer& in = buffer(instruction.inputs(i));
      if (!overlap(in, out)) {
        continue;
      }
      ++overlapping;
      if (in.offset() != out.offset() || in.bytes() != out.bytes() || !inPlace(instruction, i, index)) {
        return false;
      }
    }
    return overlapping <= 1;
  }

  bool inPlace(const plan::Instruction& instruction, int input, int output) const {
    if (instruction.has_collective()) {
      return instruction.collective().kind() == plan::ALL_REDUCE && input == output;
    }
    return describe(specOf(plan_, instruction), Target::kCpu).mayRunInPlace(input, output);
  }

  const plan::Plan& plan_;
  std::map<std::tuple<int, uint32_t, int64_t>, std::vector<Byte>> memory_;  // by class, ring, slot
  std::map<std::pair<int, uint32_t>, int64_t> slots_;
  int64_t poisoned_ = 0;
};

}  // namespace

std::string compareMemory(mlir::ModuleOp module, const plan::Plan& plan, int steps) {
  ProgramSide program(module);
  PlanSide memory(plan);
  // What the program calls a tensor.
  std::map<std::string, std::string> valueOf;
  for (mlir::Attribute entry : module->getAttrOfType<mlir::ArrayAttr>("dist.tensors")) {
    auto tensor = mlir::cast<mlir::DictionaryAttr>(entry);
    valueOf[tensor.getAs<mlir::StringAttr>("name").str()] = tensor.getAs<mlir::StringAttr>("value").str();
  }
  auto run = [&](const google::protobuf::RepeatedPtrField<plan::Action>& actions) {
    for (const plan::Action& action : actions) {
      const plan::Function& function = plan.functions(static_cast<int>(action.function()));
      program.run(function.name(), action.micro_batch());
      memory.run(function, action.micro_batch());
    }
  };
  run(plan.schedules(0).init());
  for (int step = 0; step < steps; ++step) {
    for (const plan::NamedTensor& tensor : plan.tensors()) {
      if (tensor.kind() == plan::TENSOR_INPUT) {
        program.names[valueOf[tensor.name()]] = inputToken(tensor.name(), step);
        memory.write(plan.buffers(static_cast<int>(tensor.buffer())), inputToken(tensor.name(), step), 0);
      }
    }
    run(plan.schedules(0).step());
    for (const plan::NamedTensor& tensor : plan.tensors()) {
      if (memory.read(plan.buffers(static_cast<int>(tensor.buffer())), 0) != program.names[valueOf[tensor.name()]]) {
        return "'" + tensor.name() + "' differs after step " + std::to_string(step);
      }
    }
  }
  return "";
}

void uniqueNames(mlir::ModuleOp module) {
  int64_t next = 0;
  module.walk([&](mlir::Operation* op) {
    op->setAttr("nn.name", mlir::StringAttr::get(module.getContext(), "op" + std::to_string(next++)));
  });
}

}  // namespace weft::testing
