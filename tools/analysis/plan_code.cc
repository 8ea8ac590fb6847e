#include "tools/analysis/plan_code.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/analysis/fold_layers.h"

namespace weft::tools {
namespace {

std::string quoted(const std::string& text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

// A word that is said, and of what.
struct CodeLine {
  std::string code;
  std::string source;  // "model.cc:25"
  std::string name;
  std::string kind;
};

std::string sourceOf(const SourcePlace& line) {
  return line.file.empty() ? "" : absl::StrCat(std::filesystem::path(line.file).filename().string(), ":", line.line);
}

std::string listOf(const std::vector<std::vector<std::string>>& tensors) {
  return absl::StrCat("{",
                      absl::StrJoin(tensors, ", ",
                                    [](std::string* out, const std::vector<std::string>& names) {
                                      absl::StrAppend(out, "{",
                                                      absl::StrJoin(names, ", ",
                                                                    [](std::string* list, const std::string& name) {
                                                                      absl::StrAppend(list, quoted(name));
                                                                    }),
                                                      "}");
                                    }),
                      "}");
}

std::string callsOf(const OperatorWords& words) {
  std::string calls;
  if (words.strategy) {
    absl::StrAppend(&calls, ".shard(", listOf(words.strategy->inNames),
                    words.strategy->outNames.empty() ? "" : absl::StrCat(", ", listOf(words.strategy->outNames)), ")");
  }
  absl::StrAppend(&calls, words.recomputed ? ".recomputed()" : "");
  return calls;
}

// The layer of a name, "h1.*" of "h1.qkv", else the name itself.
std::string layerOf(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == std::string::npos ? name : absl::StrCat(name.substr(0, dot), ".*");
}

// Which of the operators of one name at one line of the program: " #2 of 4"; "" of one alone.
class Ordinals {
 public:
  explicit Ordinals(const ProgramGraph& graph) {
    for (const GraphOperator& op : graph.operators) {
      if (op.phase == Phase::kForward) {
        places_[op.id] = ++counts_[keyOf(op)];
      }
    }
  }

  std::string of(const GraphOperator& op) const {
    const int count = counts_.at(keyOf(op));
    return count == 1 ? "" : absl::StrCat(" #", places_.at(op.id), " of ", count);
  }

 private:
  static std::string keyOf(const GraphOperator& op) {
    return absl::StrCat(op.label(), " ", op.facts.kind, " ", op.line.file, ":", op.line.line);
  }

  std::map<std::string, int> counts_;
  std::map<int64_t, int> places_;
};

class LineMaker {
 public:
  explicit LineMaker(const ProgramGraph& graph) : graph_(graph), ordinals_(graph) {}

  std::vector<CodeLine> run(const PlanWords& words) && {
    for (const InputWords& input : words.inputs) {
      const GraphArgument& argument = graph_.arguments[input.argument];
      lines_.push_back({absl::StrCat("{.layout = ", quoted(input.layout), "}"), sourceOf(argument.line), argument.name,
                        argumentKindName(argument.kind)});
    }
    auto next = words.operators.begin();
    for (const GraphOperator& op : graph_.operators) {
      if (next == words.operators.end()) {
        break;
      }
      if (next->id == op.id) {
        add(op, *next++);
      }
    }
    return std::move(lines_);
  }

 private:
  void add(const GraphOperator& op, const OperatorWords& words) {
    if (words.stage) {
      addStage(op, *words.stage);
    }
    if (const std::string calls = callsOf(words); !calls.empty()) {
      lines_.push_back({calls, sourceOf(op.line), op.label(), op.facts.kind + ordinals_.of(op)});
    }
  }

  // Of the operators of one line that go to one stage, one line with their layers.
  void addStage(const GraphOperator& op, int64_t stage) {
    const std::string code = absl::StrCat("{ auto stage = g.stage(", stage, "); ... }");
    const auto known = std::find_if(lines_.begin(), lines_.end(), [&](const CodeLine& line) {
      return line.code == code && line.source == sourceOf(op.line);
    });
    const std::string layer = layerOf(op.label());
    if (known == lines_.end()) {
      lines_.push_back({code, sourceOf(op.line), layer, ""});
    } else if (known->name != layer && !absl::EndsWith(known->name, " " + layer)) {
      absl::StrAppend(&known->name, " ", layer);
    }
  }

  const ProgramGraph& graph_;
  const Ordinals ordinals_;
  std::vector<CodeLine> lines_;
};

std::string optionsCode(const CompileOptions& options) {
  std::string code;
  const auto set = [&](const std::string& name, const std::string& value) {
    absl::StrAppend(&code, "options.", name, " = ", value, ";\n");
  };
  const CompileOptions defaults;
  if (!options.stageMeshes.empty()) {
    set("stageMeshes", quoted(options.stageMeshes));
  } else {
    set("mesh", quoted(options.mesh));
  }
  set("micro", absl::StrCat(options.microBatches()));
  set("zero", absl::StrCat(options.zeroLevel()));
  if (!options.zeroOf.empty()) {
    set("zeroOf", absl::StrCat("{",
                               absl::StrJoin(options.zeroOf, ", ",
                                             [](std::string* out, const auto& entry) {
                                               absl::StrAppend(out, "{", quoted(entry.first), ", ", entry.second, "}");
                                             }),
                               "}"));
  }
  if (options.fill == Fill::kReplicate) {
    set("fill", "weft::Fill::kReplicate");
  }
  if (options.schedule != defaults.schedule) {
    set("schedule", quoted(options.schedule));
    if (!options.scheduleTable.empty()) {
      set("scheduleTable", quoted(options.scheduleTable));
    }
    set("virtualStages", absl::StrCat(options.virtualStages));
  }
  set("recompute", quoted(options.recompute));
  if (options.regather) {
    set("regather", "true");
  }
  if (options.gatherBucket > 0) {
    set("gatherBucket", absl::StrCat(options.gatherBucket));
  }
  if (options.overlap) {
    set("overlap", "true");
  }
  if (options.offload == Offload::kState) {
    set("offload", "weft::Offload::kState");
  }
  if (!options.layouts.empty()) {
    absl::StrAppend(&code, "options.layouts = {\n");
    for (const auto& [pattern, layout] : options.layouts) {
      absl::StrAppend(&code, "    {", quoted(pattern), ", ", quoted(layout), "},\n");
    }
    absl::StrAppend(&code, "};\n");
  }
  return code;
}

}  // namespace

std::string codeOf(const PlanWords& words, const ProgramGraph& graph) {
  const std::vector<CodeLine> lines = LineMaker(graph).run(words);
  std::vector<FoldableLine> foldable;
  size_t width = 0;
  for (const CodeLine& line : lines) {
    foldable.push_back({line.name, {}, absl::StrCat(line.code, " ", line.source, " ", line.kind)});
    width = std::max(width, line.code.size());
  }
  std::string code = optionsCode(words.options);
  for (const FoldedLine& folded : foldLayers(foldable)) {
    const CodeLine& line = lines[folded.members.front()];
    absl::StrAppend(&code, line.code, std::string(width - line.code.size() + 2, ' '), "// ", line.source,
                    line.source.empty() ? "" : "  ", folded.name,
                    line.kind == line.name || line.kind.empty() ? "" : " (" + line.kind + ")", "\n");
  }
  if (words.options.recompute == "auto" && words.options.memoryLimit > 0) {
    code = absl::StrCat("options.memoryLimit = ", words.options.memoryLimit, ";\n", code);
  }
  for (const std::string& text : words.unsaid) {
    absl::StrAppend(&code, "// no word says: ", text, "\n");
  }
  return code;
}

}  // namespace weft::tools
