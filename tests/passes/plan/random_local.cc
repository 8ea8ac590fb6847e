#include "tests/passes/plan/random_local.h"

#include <map>
#include <random>
#include <vector>

namespace weft::testing {
namespace {

const char* const kFlat = "tensor<64xf32>";
const char* const kSquare = "tensor<8x8xf32>";
const char* const kSmall = "tensor<16xf32>";

struct Name {
  std::string name;
  std::string memory;
  std::string type;
};

struct Variable {
  std::string text;
  std::string type;
};

class Generator {
 public:
  Generator(uint64_t seed, int microBatches) : random_(seed), microBatches_(microBatches) {}

  std::string run() {
    const std::vector<Name> stored = {p0_, p1_, q_, st_};
    std::string body = function("init", {}, stored, {});
    const bool prologue = chance(2);
    if (prologue) {
      body += function("prologue", {x_, st_}, {once_}, {});
    }
    std::vector<Name> arguments = {p0_, p1_, x_, st_};
    std::vector<Name> results = some({v0_, v1_, v2_, v3_, out0_, st_});
    if (prologue) {
      arguments.push_back(once_);
    }
    body += function("forward", arguments, results, {});
    std::vector<Name> crossing;
    for (const Name& name : results) {
      if (name.memory == "activation") {
        crossing.push_back(name);
      }
    }
    const bool late = chance(2);
    arguments = some({p0_, q_, x_});
    arguments.insert(arguments.end(), crossing.begin(), crossing.end());
    if (prologue && chance(2)) {
      arguments.push_back(once_);
    }
    body += function("backward", arguments, late ? some({late_, late2_}) : std::vector<Name>(), {acc0_, acc1_});
    arguments = {p0_, p1_, q_, st_, acc0_, acc1_};
    for (const Name& name : lastResults_) {
      arguments.push_back(name);
    }
    if (prologue && chance(2)) {
      arguments.push_back(once_);
    }
    results = stored;
    results.push_back(out1_);
    results.push_back(out2_);
    body += function("update", arguments, results, {});
    return "module attributes {dist.mesh = #dist.mesh<\"dp=2,micro=" + std::to_string(microBatches_) +
           "\">, dist.tensors = [" + tensors(body) + "]} {\n" + body + "}\n";
  }

 private:
  bool chance(int of) { return random_() % of == 0; }

  std::vector<Name> some(const std::vector<Name>& names) {
    std::vector<Name> chosen;
    for (const Name& name : names) {
      if (!chance(3)) {
        chosen.push_back(name);
      }
    }
    return chosen;
  }

  static std::string list(const std::vector<Variable>& variables, bool types) {
    std::string text;
    for (const Variable& variable : variables) {
      text += (text.empty() ? "" : ", ") + (types ? variable.type : variable.text);
    }
    return text;
  }

  std::vector<Variable> emit(const std::string& op, const std::vector<Variable>& operands,
                             const std::vector<std::string>& types, const std::string& attributes = "") {
    std::vector<Variable> results;
    std::string types_text;
    std::string names;
    for (const std::string& type : types) {
      results.push_back({"%" + std::to_string(next_++), type});
      types_text += (types_text.empty() ? "" : ", ") + type;
      names += (names.empty() ? "" : ", ") + results.back().text;
    }
    body_ += "  " + names + " = " + op + " " + list(operands, false) + " {nn.name = \"op" + std::to_string(next_) +
             "\"" + attributes + "} : (" + list(operands, true) + ") -> (" + types_text + ")\n";
    for (const Variable& result : results) {
      pool_.push_back(result);
    }
    return results;
  }

  // A value of the type, recent ones more likely; made if there is none.
  Variable pick(const std::string& type) {
    std::vector<Variable> fitting;
    for (const Variable& variable : pool_) {
      if (variable.type == type) {
        fitting.push_back(variable);
      }
    }
    if (fitting.empty() || chance(12)) {
      if (chance(2)) {
        return emit("nn.constant", {}, {type}, ", value = dense<" + std::to_string(++constants_) + ".0> : " + type)[0];
      }
      return emit("nn.fill", {}, {type}, ", value = 0.5 : f64")[0];
    }
    const size_t from = chance(2) ? fitting.size() * 2 / 3 : 0;
    return fitting[from + random_() % (fitting.size() - from)];
  }

  std::string anyType() { return chance(4) ? kSmall : chance(2) ? kFlat : kSquare; }

  void randomOp() {
    const std::string type = anyType();
    const std::string reduce = ", over = #dist.axes<\"{dp}\">, reduce = \"sum\"";
    switch (random_() % 9) {
      case 0:
        emit("nn.exp", {pick(type)}, {type});
        break;
      case 1:
      case 2:
        emit("nn.add", {pick(type), pick(type)}, {type});
        break;
      case 3:
        emit("nn.reshape", {pick(kFlat)}, {kSquare});
        break;
      case 4:
        emit("nn.reshape", {pick(kSquare)}, {kFlat});
        break;
      case 5:
        emit("nn.transpose", {pick(kSquare)}, {kSquare}, ", permutation = array<i64: 1, 0>");
        break;
      case 6:
        emit("dist.all_reduce", {pick(type)}, {type}, reduce);
        break;
      case 7:
        emit("dist.all_reduce", {pick(kFlat), pick(kSquare)}, {kFlat, kSquare}, reduce);
        break;
      default:
        emit("nn.sgd",
             {pick(type), pick(type), pick(type), emit("nn.fill", {}, {"tensor<f32>"}, ", value = 0.1 : f64")[0]},
             {type, type});
    }
  }

  std::string function(const std::string& kind, const std::vector<Name>& arguments, const std::vector<Name>& results,
                       const std::vector<Name>& accumulators) {
    body_.clear();
    pool_.clear();
    std::string head = "func.func @" + kind + "(";
    std::vector<Name> taken = arguments;
    taken.insert(taken.end(), accumulators.begin(), accumulators.end());
    std::vector<Variable> accumulated;
    std::vector<Variable> swapped;
    for (size_t i = 0; i < taken.size(); ++i) {
      const Variable argument{"%a" + std::to_string(i), taken[i].type};
      head += (i == 0 ? "" : ", ") + argument.text + ": " + argument.type + " " + attributes(taken[i]);
      (i < arguments.size() ? pool_ : accumulated).push_back(argument);
      swapped.push_back(argument);
    }
    for (uint64_t i = 0, count = 2 + random_() % 10; i < count; ++i) {
      randomOp();
    }
    std::vector<Variable> returned;
    for (const Name& result : results) {
      returned.push_back(pick(result.type));
    }
    if (kind == "update" && chance(5)) {
      returned[0] = swapped[1];  // p0 and p1 trade places
      returned[1] = swapped[0];
    }
    for (Variable& accumulator : accumulated) {
      const std::string scalars = ", dist.scalars = [#dist.scalar<0, -1, 1>]";
      const bool isProduct = accumulator.type == kSquare && chance(2);
      returned.push_back(
          isProduct ? emit("dist.contract_accumulate", {accumulator, pick(kSquare), pick(kSquare)}, {kSquare},
                           scalars + ", spec = \"k m, k n -> m n\"")[0]
                    : emit("dist.accumulate", {accumulator, pick(accumulator.type)}, {accumulator.type}, scalars)[0]);
    }
    std::vector<Name> given = results;
    given.insert(given.end(), accumulators.begin(), accumulators.end());
    std::string types;
    for (const Name& result : given) {
      types += (types.empty() ? "" : ", ") + result.type + " " + attributes(result);
    }
    lastResults_ = results;
    return head + ") -> (" + types + ") attributes {dist.kind = \"" + kind + "\"} {\n" + body_ + "  return" +
           (returned.empty() ? "" : " " + list(returned, false) + " : " + list(returned, true)) + "\n}\n";
  }

  static std::string attributes(const Name& name) {
    return "{dist.value = \"" + name.name + "\", dist.memory = #dist.memory<" + name.memory + ">}";
  }

  std::string tensors(const std::string& body) const {
    std::string text;
    for (const Name& name : {p0_, p1_, q_, st_, x_, out0_, out1_, out2_}) {
      if (body.find("\"" + name.name + "\"") == std::string::npos) {
        continue;
      }
      const std::string shape = name.type == kSquare ? "8, 8" : name.type == kFlat ? "64" : "16";
      const std::string zeros = name.type == kSquare ? "array<i64: 0, 0>" : "array<i64: 0>";
      const std::string whole = "array<i64: " + shape + ">";
      text += (text.empty() ? "" : ", ") + std::string("{name = \"") + name.name + "\", kind = \"" + name.memory +
              "\", value = \"" + name.name + "\", type = \"f32\", shape = " + whole + ", file_shape = " + whole +
              ", offsets = [" + zeros + ", " + zeros + "], valid = [" + whole + ", " + whole + "]}";
    }
    return text;
  }

  std::mt19937_64 random_;
  int microBatches_;
  int next_ = 0;
  int constants_ = 0;
  std::string body_;
  std::vector<Variable> pool_;
  std::vector<Name> lastResults_;
  const Name p0_{"p0", "parameter", kFlat}, p1_{"p1", "parameter", kFlat}, q_{"q", "parameter", kSquare};
  const Name st_{"st", "state", kSmall}, x_{"x", "input", kFlat}, once_{"once", "accumulator", kSmall};
  const Name v0_{"v0", "activation", kFlat}, v1_{"v1", "activation", kSquare}, v2_{"v2", "activation", kFlat};
  const Name v3_{"v3", "activation", kSmall}, out0_{"out0", "output", kSquare}, out1_{"out1", "output", kFlat};
  const Name out2_{"out2", "output", kFlat}, acc0_{"acc0", "accumulator", kFlat}, acc1_{"acc1", "accumulator", kSquare};
  const Name late_{"late", "accumulator", kFlat}, late2_{"late2", "accumulator", kSmall};
};

}  // namespace

std::string randomLocalModule(uint64_t seed, int microBatches) {
  return Generator(seed, microBatches).run();
}

}  // namespace weft::testing
