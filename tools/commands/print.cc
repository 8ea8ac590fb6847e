#include "tools/commands/print.h"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/logical/read_module.h"
#include "passes/pipeline.h"
#include "runtime/base/read_text.h"
#include "runtime/base/status.h"
#include "tools/analysis/module_table.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "print";
constexpr char kUsage[] = "weft print STATE.mlir";

const std::vector<Flag>& printFlags() {
  static const std::vector<Flag> flags{{"json", Flag::kSwitch, "print JSON, source files with their folders"}};
  return flags;
}

// "model.cc:32"; "" unknown.
std::string sourceText(const ModuleRow& row, bool withFolder) {
  const std::string file = withFolder ? row.file : std::filesystem::path(row.file).filename().string();
  return row.file.empty() ? "" : absl::StrCat(file, ":", row.line);
}

void printJson(const ModuleTable& table) {
  Json out = {{"state", table.state}, {"phase", table.phase}, {"groups", Json::array()}};
  for (const ModuleGroup& group : table.groups) {
    Json rows = Json::array();
    for (const ModuleRow& row : group.rows) {
      rows.push_back({{"name", row.name},
                      {"operator", row.op},
                      {"shape", row.shape},
                      {"layout", row.layout},
                      {"decided_by", row.origin},
                      {"source", sourceText(row, true)}});
    }
    out["groups"].push_back({{"function", group.function}, {"stage", group.stage}, {"rows", rows}});
  }
  // Names that are no UTF-8 are shown as well as can be.
  std::cout << out.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

std::string headingOf(const ModuleGroup& group, bool stages) {
  return group.function.empty() ? "arguments"
                                : absl::StrCat("@", group.function,
                                               stages && group.stage >= 0 ? absl::StrCat(", stage ", group.stage) : "");
}

std::vector<std::string> cellsOf(const ModuleRow& row) {
  return {row.name, row.op, row.shape, row.layout, sourceText(row, false), row.origin};
}

// Columns in which no row of the table has anything are left out.
void printTable(const ModuleTable& table) {
  std::vector<std::string> names{"name", "operator", "shape", "layout", "source", "decided by"};
  std::vector<bool> used(names.size(), false);
  bool stages = false;
  size_t count = 0;
  for (const ModuleGroup& group : table.groups) {
    stages = stages || group.stage > 0;
    count += group.rows.size();
    for (const ModuleRow& row : group.rows) {
      const std::vector<std::string> cells = cellsOf(row);
      for (size_t c = 0; c < cells.size(); ++c) {
        used[c] = used[c] || !cells[c].empty();
      }
    }
  }
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::vector<std::string>& cells) {
    std::vector<std::string>& row = rows.emplace_back();
    for (size_t c = 0; c < cells.size(); ++c) {
      if (used[c]) {
        row.push_back(cells[c].empty() ? "-" : cells[c]);
      }
    }
  };
  add(names);
  for (const ModuleGroup& group : table.groups) {
    rows.push_back({headingOf(group, stages)});
    for (const ModuleRow& row : group.rows) {
      add(cellsOf(row));
    }
  }
  std::cout << "state " << table.state << (table.phase.empty() ? "" : ", after " + table.phase) << "\n"
            << tools::table(rows) << count << " arguments and operators\n";
}

absl::Status run(const std::string& path, bool json) {
  mlir::DialectRegistry dialects;
  registerWeftDialects(dialects);
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  WEFT_ASSIGN_OR_RETURN(const std::string text, readText(path));
  WEFT_ASSIGN_OR_RETURN(const mlir::OwningOpRef<mlir::ModuleOp> module, readModule(text, path, context));
  WEFT_ASSIGN_OR_RETURN(const ModuleTable table, tableOf(*module));
  json ? printJson(table) : printTable(table);
  return absl::OkStatus();
}

}  // namespace

int printCommand(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, printFlags());
    return 0;
  }
  const std::string path = takePath(argc, argv);
  absl::StatusOr<Flags> flags = Flags::parse(printFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(kName, flags.ok() ? absl::InvalidArgumentError("a module file is missing") : flags.status());
  }
  const absl::Status status = run(path, flags->has("json"));
  return status.ok() ? 0 : fail(kName, status);
}

}  // namespace weft::tools
