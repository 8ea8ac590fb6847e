// The flags of one command of a tool: `--name value`, `--name=value`, and switches `--name`; `-o` is `--output`.
//
//   absl::StatusOr<Flags> flags = Flags::parse({{"mesh", Flag::kRequired, "axes, such as dp=2,tp=4"},
//                                               {"json", Flag::kSwitch, "print JSON"}}, argc, argv);
//   if (!flags.ok()) return usageError(...);
//   Mesh mesh = flags->text("mesh");
//
// Errors: an unknown flag (with the nearest known one), a flag given twice, a missing value, a missing required flag.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/layout/layout.h"
#include "runtime/base/numbers.h"

namespace weft::tools {

struct Flag {
  enum Kind { kRequired, kOptional, kSwitch };
  std::string name;
  Kind kind = kOptional;
  std::string help;
};

class Flags {
 public:
  // argv[0] is the command's own name.
  static absl::StatusOr<Flags> parse(const std::vector<Flag>& known, int argc, char** argv);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  // The value, or `otherwise` if the flag is not given.
  std::string text(const std::string& name, const std::string& otherwise = "") const;
  // The value as a number, or `otherwise` if the flag is not given. Errors name the flag, the value and the range.
  absl::StatusOr<int64_t> integer(const std::string& name, int64_t otherwise, const IntegerRange& range) const;

 private:
  std::map<std::string, std::string> values_;
};

// Takes a file in front of the flags from the arguments; "" if the first is a flag or absent.
std::string takePath(int& argc, char**& argv);

// One line per flag.
std::string flagHelp(const std::string& usage, const std::vector<Flag>& known);

// True for --help anywhere in the arguments.
bool wantsHelp(int argc, char** argv);

// "16,32" to a shape; "" is a scalar. Errors name the part.
absl::StatusOr<Shape> parseShape(const std::string& text);

// Print to stderr, behind the name of the command ("reshard") or of a program of its own ("weft-run"); the results are
// exit statuses: 1 a command that failed, 2 a command that was called wrongly.
int fail(const std::string& command, const absl::Status& status);
int usageError(const std::string& command, const absl::Status& status);
// The exit status of a command that is over: a failure, too, where what it printed could not be written.
int finishOutput(const std::string& command, int status);

// Rows of cells as aligned columns; the first row is the heading.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace weft::tools
