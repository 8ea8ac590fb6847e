#include "tools/commands/advise.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "ir/program/program.h"
#include "passes/compile.h"
#include "passes/logical/read_module.h"
#include "planner/advise/advise_memory.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "tools/commands/flags.h"
#include "tools/commands/request_flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "advise";
constexpr char kUsage[] = "weft advise MODEL.mlir [flags]: MODEL.mlir is a logical module, as 00-input.mlir of a dump";

const std::vector<Flag>& adviseFlags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all = requestFlags();
    all.push_back({"json", Flag::kSwitch, "print JSON"});
    return all;
  }();
  return flags;
}

void printJson(const MemoryAdvice& advice) {
  Json lines = Json::array();
  for (const AdviceLine& line : advice.lines) {
    lines.push_back({{"kind", line.kind},
                     {"set", line.set},
                     {"saved_bytes", line.savedBytes},
                     {"peak_bytes_per_rank", line.peakBytes},
                     {"time_factor", line.timeFactor}});
  }
  std::cout << Json{{"peak_bytes_per_rank", advice.peakBytes}, {"advice", lines}}.dump(1) << "\n";
}

void printText(const MemoryAdvice& advice) {
  if (advice.lines.empty()) {
    std::cout << "Nothing that is tried here lowers the predicted peak of " << advice.peakBytes << " bytes.\n";
    return;
  }
  std::cout << "The rank with the highest peak needs " << advice.peakBytes
            << " bytes, predicted. Less (lines of --recompute hold the ones above, all others stand alone):\n";
  std::vector<std::vector<std::string>> rows{{"saved bytes", "step time", "set"}};
  for (const AdviceLine& line : advice.lines) {
    rows.push_back({std::to_string(line.savedBytes), absl::StrFormat("x %.3f", line.timeFactor), line.set});
  }
  std::cout << table(rows);
}

absl::Status run(const std::string& path, const Flags& flags) {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, path, context));
  if (!(*module)->hasAttr(kOptimizerAttr)) {
    return absl::InvalidArgumentError(path + " has no optimizer: a forward program keeps nothing for a backward pass");
  }
  WEFT_RETURN_IF_ERROR(applyRequestFlags(*module, flags));
  WEFT_ASSIGN_OR_RETURN(const MemoryAdvice advice, adviseModule(*module, ir::OperatorRegistry::builtin()));
  flags.has("json") ? printJson(advice) : printText(advice);
  return absl::OkStatus();
}

}  // namespace

int adviseCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, adviseFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(adviseFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("a module file is missing") : flags.status());
  }
  const absl::Status status = run(path, *flags);
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
