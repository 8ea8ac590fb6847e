#include "tests/passes/gates/mutations.h"

#include <array>
#include <limits>

#include "ir/dist/dist.h"
#include "ir/program/program.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace weft::testing {
namespace {

using namespace mlir;  // NOLINT

// A place that holds an attribute; setting nothing leaves it out.
using Setter = std::function<void(Attribute)>;

class Mutator {
 public:
  explicit Mutator(ModuleOp module) : module_(module), builder_(module.getContext()) {}

  std::vector<Mutation> run() {
    module_.walk([&](Operation* op) { visit(op); });
    return std::move(mutations_);
  }

 private:
  void add(const std::string& where, const std::string& kind, std::function<void()> apply) {
    mutations_.push_back({where + ": " + kind.substr(kind.find('|') + 1), kind, std::move(apply)});
  }

  static std::string whereOf(Operation* op) {
    auto function = op->getParentOfType<func::FuncOp>();
    return op->getName().getStringRef().str() + (function ? " in @" + function.getName().str() : "");
  }

  void visit(Operation* op) {
    const std::string name = op->getName().getStringRef().str();
    for (NamedAttribute entry : op->getAttrDictionary()) {
      const std::string key = entry.getName().str();
      attribute(whereOf(op), name + "|" + key, entry.getValue(), [op, key](Attribute value) {
        value ? op->setAttr(key, value) : static_cast<void>(op->removeAttr(key));
      });
    }
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      visitFunction(function);
    }
    if (op != module_ && isa<func::FuncOp, ModuleOp>(op)) {
      add(whereOf(op), name + "|left out", [op] { op->erase(); });
      add(whereOf(op), name + "|twice", [op] {
        Operation* copy = op->clone();
        op->getBlock()->push_back(copy);
        SymbolTable::setSymbolName(copy, "other");
      });
      for (const char* other : {"step", "init", "update", "forward", "backward.7", "submesh0", "submesh9", "x"}) {
        add(whereOf(op), name + "|named " + other, [op, other] { SymbolTable::setSymbolName(op, other); });
      }
    } else if (op->getParentOfType<func::FuncOp>()) {
      visitInner(op);
    }
  }

  void visitFunction(func::FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      const std::string where = "argument " + std::to_string(i) + " of @" + function.getName().str();
      const DictionaryAttr attrs = function.getArgAttrDict(i);
      for (NamedAttribute entry : attrs ? attrs.getValue() : ArrayRef<NamedAttribute>()) {
        const std::string key = entry.getName().str();
        attribute(where, "argument|" + key, entry.getValue(), [function, i, key](Attribute value) mutable {
          value ? function.setArgAttr(i, key, value) : static_cast<void>(function.removeArgAttr(i, key));
        });
      }
      types(where, function.getArgument(i), [function]() mutable { refreshType(function); });
      add(where, "argument|no attributes", [function, i]() mutable { function.setArgAttrs(i, DictionaryAttr()); });
      add(where, "argument|unused", [function, i]() mutable {
        BlockArgument argument = function.getArgument(i);
        for (BlockArgument other : function.getArguments()) {
          if (other != argument && other.getType() == argument.getType()) {
            argument.replaceAllUsesWith(other);
          }
        }
      });
      add(where, "argument|erased", [function, i]() mutable {
        BlockArgument argument = function.getArgument(i);
        for (BlockArgument other : function.getArguments()) {
          if (other != argument && other.getType() == argument.getType()) {
            argument.replaceAllUsesWith(other);
          }
        }
        if (argument.use_empty()) {
          function.eraseArgument(i);
        }
      });
      add(where, "argument|doubled", [function, i]() mutable {
        addArgument(function, function.getArgument(i).getType(), NamedAttrList(function.getArgAttrDict(i)),
                    function.getLoc());
      });
      add(where, "argument|attributes of the next", [function, i]() mutable {
        const unsigned next = (i + 1) % function.getNumArguments();
        const DictionaryAttr mine = function.getArgAttrDict(i);
        function.setArgAttrs(i, function.getArgAttrDict(next));
        function.setArgAttrs(next, mine);
      });
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      visitResult(function, i);
    }
    add("@" + function.getName().str(), "func|without body", [function]() mutable {
      function.eraseBody();
      function.setPrivate();
    });
    add("@" + function.getName().str(), "func|empty", [function]() mutable {
      Block& body = function.getBody().front();
      body.getTerminator()->setOperands({});
      while (&body.front() != body.getTerminator()) {
        body.getTerminator()->getPrevNode()->erase();
      }
      refreshType(function);
      function.setAllResultAttrs(ArrayRef<DictionaryAttr>());
    });
    add("@" + function.getName().str(), "func|calls itself", [function]() mutable {
      OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
      builder.create<func::CallOp>(function.getLoc(), function, function.getArguments());
    });
  }

  void visitResult(func::FuncOp function, unsigned i) {
    const std::string where = "result " + std::to_string(i) + " of @" + function.getName().str();
    const DictionaryAttr attrs = function.getResultAttrDict(i);
    for (NamedAttribute entry : attrs ? attrs.getValue() : ArrayRef<NamedAttribute>()) {
      const std::string key = entry.getName().str();
      attribute(where, "result|" + key, entry.getValue(), [function, i, key](Attribute value) mutable {
        value ? function.setResultAttr(i, key, value)
              : static_cast<void>(function.removeResultAttr(i, StringAttr::get(function.getContext(), key)));
      });
    }
    add(where, "result|no attributes",
        [function, i]() mutable { function.setResultAttrs(i, DictionaryAttr::get(function.getContext())); });
    add(where, "result|doubled", [function, i]() mutable {
      addResult(function, returned(function, i), NamedAttrList(function.getResultAttrDict(i)));
    });
    add(where, "result|erased", [function, i]() mutable {
      function.getBody().front().getTerminator()->eraseOperand(i);
      function.eraseResult(i);
    });
    add(where, "result|another value", [function, i]() mutable {
      Operation* terminator = function.getBody().front().getTerminator();
      for (Operation& op : function.getBody().front().without_terminator()) {
        for (Value value : op.getResults()) {
          if (value.getType() == terminator->getOperand(i).getType() && value != terminator->getOperand(i)) {
            return terminator->setOperand(i, value);
          }
        }
      }
      for (BlockArgument argument : function.getArguments()) {
        if (argument.getType() == terminator->getOperand(i).getType()) {
          return terminator->setOperand(i, argument);
        }
      }
    });
  }

  void visitInner(Operation* op) {
    const std::string name = op->getName().getStringRef().str();
    const std::string where = whereOf(op);
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      return;
    }
    for (OpResult result : op->getResults()) {
      types(where, result, [] {});
    }
    add(where, name + "|left out", [op] {
      for (OpResult result : op->getResults()) {
        for (Value operand : op->getOperands()) {
          if (operand.getType() == result.getType()) {
            result.replaceAllUsesWith(operand);
          }
        }
      }
      if (op->use_empty()) {
        op->erase();
      }
    });
    add(where, name + "|twice", [op] {
      Operation* copy = op->clone();
      op->getBlock()->getOperations().insertAfter(Block::iterator(op), copy);
      op->replaceAllUsesWith(copy);
    });
    add(where, name + "|first", [op] { op->moveBefore(&op->getBlock()->front()); });
    add(where, name + "|last", [op] { op->moveBefore(op->getBlock()->getTerminator()); });
    add(where, name + "|operands swapped", [op] {
      if (op->getNumOperands() > 1) {
        Value first = op->getOperand(0);
        op->setOperand(0, op->getOperand(1));
        op->setOperand(1, first);
      }
    });
    add(where, name + "|one operand for all", [op] {
      for (OpOperand& operand : op->getOpOperands()) {
        operand.set(op->getOperand(0));
      }
    });
    add(where, name + "|operand doubled", [op] {
      if (op->getNumOperands() > 0) {
        op->insertOperands(op->getNumOperands(), op->getOperand(0));
      }
    });
    add(where, name + "|reads arguments", [op] {
      for (OpOperand& operand : op->getOpOperands()) {
        for (BlockArgument argument : op->getBlock()->getArguments()) {
          if (argument.getType() == operand.get().getType()) {
            operand.set(argument);
          }
        }
      }
    });
    add(where, name + "|no attributes", [op] { op->setAttrs(DictionaryAttr::get(op->getContext())); });
    add(where, name + "|no location", [op] { op->setLoc(UnknownLoc::get(op->getContext())); });
  }

  void types(const std::string& where, Value value, std::function<void()> after) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (!tensor) {
      return;
    }
    const auto change = [&](const std::string& what, Type type) {
      add(where, "type|" + what, [value, type, after]() mutable {
        value.setType(type);
        after();
      });
    };
    Shape huge(tensor.getRank(), int64_t{1} << 62);
    Shape none(tensor.getRank(), 0);
    Shape other = tensor.getShape();
    other.push_back(1);
    change("huge", RankedTensorType::get(huge, tensor.getElementType(), tensor.getEncoding()));
    change("empty", RankedTensorType::get(none, tensor.getElementType(), tensor.getEncoding()));
    change("another rank", RankedTensorType::get(other, tensor.getElementType()));
    change("f16", RankedTensorType::get(tensor.getShape(), builder_.getF16Type(), tensor.getEncoding()));
    change("i8", RankedTensorType::get(tensor.getShape(), builder_.getI8Type(), tensor.getEncoding()));
    change("dynamic", RankedTensorType::get(Shape(tensor.getRank(), ShapedType::kDynamic), tensor.getElementType()));
    change("unranked", UnrankedTensorType::get(tensor.getElementType()));
    change("index", builder_.getIndexType());
    change("other encoding", RankedTensorType::get(tensor.getShape(), tensor.getElementType(), builder_.getUnitAttr()));
    change("no encoding", RankedTensorType::get(tensor.getShape(), tensor.getElementType()));
    std::string layout = "[";
    for (int64_t d = 0; d < tensor.getRank(); ++d) {
      layout += d > 0 ? ",{}" : "{all}";
    }
    for (const std::string& text : {layout + "]", layout + "] partial{micro:sum}", std::string("[]"),
                                    layout + "] pad{0:4611686018427387904}", std::string("[{nothing}]")}) {
      change("layout " + text, RankedTensorType::get(tensor.getShape(), tensor.getElementType(),
                                                     ir::dist::LayoutAttr::get(builder_.getContext(), text)));
    }
  }

  // `value` stands at a place that `set` changes; so do the entries inside of it.
  void attribute(const std::string& where, const std::string& kind, Attribute value, const Setter& set) {
    add(where, kind + " left out", [set] { set({}); });
    for (const auto& [text, other] : others(value)) {
      if (other != value) {
        add(where, kind + " = " + text, [set, other = other] { set(other); });
      }
    }
    if (auto dictionary = dyn_cast<DictionaryAttr>(value)) {
      for (NamedAttribute entry : dictionary) {
        const StringAttr key = entry.getName();
        attribute(where, kind + "." + key.str(), entry.getValue(), [dictionary, key, set](Attribute inner) {
          NamedAttrList entries(dictionary);
          inner ? static_cast<void>(entries.set(key, inner)) : static_cast<void>(entries.erase(key));
          set(entries.getDictionary(dictionary.getContext()));
        });
      }
    }
    if (auto array = dyn_cast<ArrayAttr>(value); array && !array.empty()) {
      attribute(where, kind + "[0]", array[0], [array, set](Attribute inner) {
        SmallVector<Attribute> entries(array.begin(), array.end());
        inner ? static_cast<void>(entries[0] = inner) : static_cast<void>(entries.erase(entries.begin()));
        set(ArrayAttr::get(array.getContext(), entries));
      });
      add(where, kind + " longer", [array, set] {
        SmallVector<Attribute> entries(array.begin(), array.end());
        entries.push_back(entries.back());
        set(ArrayAttr::get(array.getContext(), entries));
      });
    }
    if (auto numbers = dyn_cast<DenseI64ArrayAttr>(value)) {
      lists(where, kind, numbers, set);
    }
  }

  void lists(const std::string& where, const std::string& kind, DenseI64ArrayAttr numbers, const Setter& set) {
    const auto give = [&](const std::string& what, std::vector<int64_t> list) {
      add(where, kind + what,
          [set, list, context = builder_.getContext()] { set(DenseI64ArrayAttr::get(context, list)); });
    };
    std::vector<int64_t> list(numbers.asArrayRef());
    for (const int64_t number : {int64_t{-1}, int64_t{7}, int64_t{1} << 62}) {
      std::vector<int64_t> changed = list;
      changed.empty() ? changed.push_back(number) : static_cast<void>(changed.back() = number);
      give(" ends in " + std::to_string(number), changed);
    }
    list.push_back(0);
    give(" longer", list);
    list.resize(numbers.size() / 2);
    give(" shorter", list);
    give(" = array of i64, empty", {});
  }

  std::vector<std::pair<std::string, Attribute>> others(Attribute value) {
    const int64_t most = std::numeric_limits<int64_t>::max();
    std::vector<std::pair<std::string, Attribute>> all = {
        {"unit", builder_.getUnitAttr()},
        {"-1", builder_.getI64IntegerAttr(-1)},
        {"0", builder_.getI64IntegerAttr(0)},
        {"1000", builder_.getI64IntegerAttr(1000)},
        {"2^62", builder_.getI64IntegerAttr(int64_t{1} << 62)},
        {"2^63-1", builder_.getI64IntegerAttr(most)},
        {"i8", builder_.getI8IntegerAttr(1)},
        {"true", builder_.getBoolAttr(true)},
        {"nan", builder_.getF64FloatAttr(std::numeric_limits<double>::quiet_NaN())},
        {"1e300", builder_.getF64FloatAttr(1e300)},
        {"f32", builder_.getF32FloatAttr(1)},
        {"\"\"", builder_.getStringAttr("")},
        {"\"x\"", builder_.getStringAttr("x")},
        {"\"backward\"", builder_.getStringAttr("backward")},
        {"[]", builder_.getArrayAttr({})},
        {"[[\"x\"]]", builder_.getArrayAttr({builder_.getArrayAttr({builder_.getStringAttr("x")})})},
        {"{}", builder_.getDictionaryAttr({})},
        {"a type", TypeAttr::get(builder_.getF32Type())},
    };
    if (isa<StringAttr>(value)) {
      for (const char* text : {"update", "forward", "parameter", "activation", "input", "[{}]", "[{all}]", "[{},{}]",
                               "[{},{}] partial{all:max}", "interleaved", "table", "dp=3;dp=5", "{}"}) {
        all.push_back({"\"" + std::string(text) + "\"", builder_.getStringAttr(text)});
      }
    }
    if (isa<ir::dist::MeshAttr>(value)) {
      for (const char* text : {"1", "3", "dp=3,micro=5", "dp=16384", "micro=16384", "dp=2,tp=2,micro=3"}) {
        all.push_back({"mesh " + std::string(text), ir::dist::MeshAttr::get(builder_.getContext(), text)});
      }
    }
    if (isa<ir::dist::ScalarAttr>(value)) {
      for (const auto& [immediate, column, factor] :
           {std::tuple<int64_t, int64_t, int64_t>{most, -1, 0}, {0, 1000, 0}, {0, -1, most}, {-1, -1, 0}}) {
        all.push_back({"scalar " + std::to_string(immediate) + " " + std::to_string(column),
                       ir::dist::ScalarAttr::get(builder_.getContext(), immediate, column, factor)});
      }
    }
    if (isa<ir::dist::MemoryAttr>(value)) {
      for (uint32_t i = 0; i <= ir::dist::getMaxEnumValForMemory(); ++i) {
        const auto memory = static_cast<ir::dist::Memory>(i);
        all.push_back(
            {"memory " + stringifyMemory(memory).str(), ir::dist::MemoryAttr::get(builder_.getContext(), memory)});
      }
    }
    if (auto storage = dyn_cast<ir::dist::StorageAttr>(value)) {
      addStorages(storage, all);
    }
    if (auto region = dyn_cast<ir::dist::RegionAttr>(value)) {
      addRegions(region, all);
    }
    if (auto actions = dyn_cast<ir::dist::ActionsAttr>(value)) {
      addActions(actions, all);
    }
    return all;
  }

  using Others = std::vector<std::pair<std::string, Attribute>>;

  // Storages that differ from this one in one thing.
  static void addStorages(ir::dist::StorageAttr was, Others& all) {
    const auto add = [&](const std::string& what, ir::dist::Memory memory, std::array<int64_t, 3> bytesOffsetRing,
                         StringRef label) {
      const auto [bytes, offset, ring] = bytesOffsetRing;
      all.push_back(
          {"storage, " + what, ir::dist::StorageAttr::get(was.getContext(), memory, bytes, label, offset, ring)});
    };
    const int64_t bytes = was.getBytes();
    const int64_t offset = was.getOffset();
    const int64_t ring = was.getRing();
    for (uint32_t i = 0; i <= ir::dist::getMaxEnumValForMemory(); ++i) {
      const auto memory = static_cast<ir::dist::Memory>(i);
      add("memory " + stringifyMemory(memory).str(), memory, {bytes, offset, ring}, was.getLabel());
    }
    for (const int64_t number : kNumbers) {
      const std::string text = std::to_string(number);
      add("bytes " + text, was.getMemory(), {number, offset, ring}, was.getLabel());
      add("offset " + text, was.getMemory(), {bytes, number, ring}, was.getLabel());
      add("ring " + text, was.getMemory(), {bytes, offset, number}, was.getLabel());
    }
    add("label", was.getMemory(), {bytes, offset, ring}, "\xff");
  }

  static void addRegions(ir::dist::RegionAttr was, Others& all) {
    const std::array<int64_t, 6> fields = {was.getBytes(), was.getMaxLive(), was.getLowerBound(),
                                           was.getRing(),  was.getSlots(),   was.getStage()};
    const auto add = [&](const std::string& what, ir::dist::Memory memory, const std::array<int64_t, 6>& with) {
      all.push_back({"region, " + what, ir::dist::RegionAttr::get(was.getContext(), memory, with[0], with[1], with[2],
                                                                  with[3], with[4], with[5])});
    };
    for (uint32_t i = 0; i <= ir::dist::getMaxEnumValForMemory(); ++i) {
      const auto memory = static_cast<ir::dist::Memory>(i);
      add("memory " + stringifyMemory(memory).str(), memory, fields);
    }
    for (size_t field = 0; field < fields.size(); ++field) {
      for (const int64_t number : kNumbers) {
        std::array<int64_t, 6> with = fields;
        with[field] = number;
        add("field " + std::to_string(field) + " " + std::to_string(number), was.getMemory(), with);
      }
    }
  }

  static void addActions(ir::dist::ActionsAttr was, Others& all) {
    using Calls = std::vector<ir::dist::CallAttr>;
    const Calls init(was.getInit());
    const Calls step(was.getStep());
    const auto add = [&](const std::string& what, const Calls& first, const Calls& then) {
      all.push_back({"actions, " + what, ir::dist::ActionsAttr::get(was.getContext(), first, then)});
    };
    add("none", {}, {});
    add("init in a step", init, init);
    add("step in init", step, {});
    add("backwards", init, Calls(step.rbegin(), step.rend()));
    Calls doubled = step;
    doubled.insert(doubled.end(), step.begin(), step.end());
    add("step twice", init, doubled);
    add("without the first", init, Calls(step.begin() + (step.empty() ? 0 : 1), step.end()));
    for (const int64_t number : kNumbers) {
      Calls changed = step;
      changed.push_back(
          ir::dist::CallAttr::get(was.getContext(), FlatSymbolRefAttr::get(was.getContext(), "forward"), number));
      add("forward " + std::to_string(number), init, changed);
    }
    Calls unknown = step;
    unknown.push_back(
        ir::dist::CallAttr::get(was.getContext(), FlatSymbolRefAttr::get(was.getContext(), "nothing"), 0));
    add("an unknown function", init, unknown);
  }

  // Wrong for most sizes, offsets and counts: none, not aligned, beyond a region, beyond 32 bits, beyond all.
  static constexpr int64_t kNumbers[] = {-1, 0, 1, 64, 4096, int64_t{1} << 32, int64_t{1} << 62};

  ModuleOp module_;
  Builder builder_;
  std::vector<Mutation> mutations_;
};

}  // namespace

std::vector<Mutation> mutationsOf(ModuleOp module) {
  return Mutator(module).run();
}

}  // namespace weft::testing
