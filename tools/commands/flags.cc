#include "tools/commands/flags.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/limits.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft::tools {
namespace {

std::vector<std::string> namesOf(const std::vector<Flag>& known) {
  std::vector<std::string> names;
  for (const Flag& flag : known) {
    names.push_back(flag.name);
  }
  return names;
}

absl::Status unknownFlag(const std::string& name, const std::vector<Flag>& known) {
  std::string near = similarName(name, namesOf(known));
  return absl::InvalidArgumentError(
      near.empty() ? absl::StrCat("unknown flag '--", name, "'; known: --", absl::StrJoin(namesOf(known), ", --"))
                   : absl::StrCat("unknown flag '--", name, "'; did you mean '--", near, "'?"));
}

// "weft reshard" of "reshard"; other programs have names of their own: "weft-run".
std::string asTyped(const std::string& command) {
  return command.rfind("weft-", 0) == 0 ? command : absl::StrCat("weft ", command);
}

}  // namespace

absl::StatusOr<Flags> Flags::parse(const std::vector<Flag>& known, int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word = word == "-o" ? "--output" : word;
    if (word.rfind("--", 0) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", word, "'; flags begin with --"));
    }
    size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    auto flag = std::find_if(known.begin(), known.end(), [&](const Flag& f) { return f.name == name; });
    if (flag == known.end()) {
      return unknownFlag(name, known);
    }
    std::string value;
    if (equals != std::string::npos) {
      if (flag->kind == Flag::kSwitch) {
        return absl::InvalidArgumentError(absl::StrCat("flag '--", name, "' takes no value"));
      }
      value = word.substr(equals + 1);
    } else if (flag->kind != Flag::kSwitch) {
      if (++i == argc) {
        return absl::InvalidArgumentError(absl::StrCat("flag '--", name, "' needs a value: ", flag->help));
      }
      value = argv[i];
    }
    if (!flags.values_.emplace(name, value).second) {
      return absl::InvalidArgumentError(absl::StrCat("flag '--", name, "' is given twice"));
    }
  }
  for (const Flag& flag : known) {
    if (flag.kind == Flag::kRequired && !flags.has(flag.name)) {
      return absl::InvalidArgumentError(absl::StrCat("flag '--", flag.name, "' is missing: ", flag.help));
    }
  }
  return flags;
}

std::string Flags::text(const std::string& name, const std::string& otherwise) const {
  auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

absl::StatusOr<int64_t> Flags::integer(const std::string& name, int64_t otherwise, const IntegerRange& range) const {
  if (!has(name)) {
    return otherwise;
  }
  absl::StatusOr<int64_t> value = parseInteger(text(name), range);
  return value.ok() ? value
                    : absl::InvalidArgumentError(absl::StrCat("--", name, " ", std::string(value.status().message())));
}

std::string flagHelp(const std::string& usage, const std::vector<Flag>& known) {
  std::string text = absl::StrCat(usage, "\n");
  size_t width = 0;
  for (const Flag& flag : known) {
    width = std::max(width, flag.name.size());
  }
  for (const Flag& flag : known) {
    absl::StrAppend(&text, "  --", flag.name, std::string(width - flag.name.size() + 2, ' '), flag.help,
                    flag.kind == Flag::kRequired ? " (required)" : "", "\n");
  }
  return text;
}

bool wantsHelp(int argc, char** argv) {
  return std::any_of(argv, argv + argc, [](const char* word) { return std::string(word) == "--help"; });
}

std::string takePath(int& argc, char**& argv) {
  if (argc < 2 || argv[1][0] == '-') {
    return "";
  }
  --argc;
  ++argv;
  return argv[0];
}

absl::StatusOr<Shape> parseShape(const std::string& text) {
  Shape shape;
  if (text.empty()) {
    return shape;
  }
  int64_t elements = 1;
  std::vector<std::string> parts = absl::StrSplit(text, ',');
  for (const std::string& part : parts) {
    absl::StatusOr<int64_t> size = parseInteger(part, {1, kMaxBytes});
    if (!size.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("shape '", text, "': ", std::string(size.status().message()),
                                                     "; write sizes with commas, such as 16,32"));
    }
    elements = *size > kMaxBytes / elements ? kMaxBytes + 1 : elements * *size;
    shape.push_back(*size);
  }
  if (elements > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape '", text, "' has more than ", kMaxBytes, " elements; write a smaller one"));
  }
  return shape;
}

int fail(const std::string& command, const absl::Status& status) {
  std::cerr << asTyped(command) << ": " << std::string(status.message()) << "\n";
  return 1;
}

int usageError(const std::string& command, const absl::Status& status) {
  std::cerr << asTyped(command) << ": " << std::string(status.message()) << "\nTry '" << asTyped(command)
            << " --help'.\n";
  return 2;
}

int finishOutput(const std::string& command, int status) {
  const absl::Status printed = flushStandardOutput();
  return printed.ok() || status != 0 ? status : fail(command, printed);
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      bool last = c + 1 == row.size();
      absl::StrAppend(&text, row[c], last ? "\n" : std::string(widths[c] - row[c].size() + 2, ' '));
    }
  }
  return text;
}

}  // namespace weft::tools
