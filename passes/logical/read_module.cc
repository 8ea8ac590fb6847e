#include "passes/logical/read_module.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "passes/logical/line_ends.h"
#include "passes/logical/module_file.h"
#include "runtime/base/status.h"

namespace weft {

namespace {

// Real modules stay below 20; a frame of the parser takes some hundred bytes of a stack of 8 MiB.
constexpr int kMostDeep = 200;
constexpr int kMostErrors = 20;

// Walks over the text as MLIR's lexer does and counts what stands inside of what.
class NestingChecker {
 public:
  NestingChecker(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  absl::Status run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        skipString();
      } else if (c == '/' && text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '#' || c == '!' || isLetter(c)) {
        WEFT_RETURN_IF_ERROR(word());
      } else {
        WEFT_RETURN_IF_ERROR(bracket(c));
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool isLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  absl::Status error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_, ": error: ", what));
  }

  void skipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
      at_ += text_[at_] == '\\' ? 1 : 0;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  // The definition of an alias stands at the beginning of a line outside of all brackets; what it names is as deep as
  // its brackets and the aliases in them.
  absl::Status word() {
    const size_t begin = at_++;
    const auto isPart = [](char c) { return isLetter(c) || (c >= '0' && c <= '9') || c == '.' || c == '$'; };
    while (at_ < text_.size() && isPart(text_[at_])) {
      ++at_;
    }
    const std::string word = text_.substr(begin, at_ - begin);
    if (word == "affine_map" || word == "affine_set") {
      return error(absl::StrCat(word, " has no place in a module of weft; remove it"));
    }
    if (word == "array" && isArrayOfBits()) {
      return error("array<i1> has no place in a module of weft; write array<i64>");
    }
    if (isLetter(word[0])) {
      return absl::OkStatus();
    }
    const bool defines = depth_ == 0 && (begin == 0 || text_[begin - 1] == '\n');
    if (defines) {
      alias_ = word;
      aliases_[alias_] = 0;
      return absl::OkStatus();
    }
    const auto known = aliases_.find(word);
    return known == aliases_.end() ? absl::OkStatus() : deep(depth_ + known->second);
  }

  // Does "<i1" follow? MLIR 19 reads `array<i1: 0, 1>` as two elements without storage, and crashes when it prints
  // them.
  bool isArrayOfBits() const {
    constexpr size_t kLength = 3;
    std::string type;
    for (size_t i = at_; i < text_.size() && type.size() <= kLength && text_[i] != ':' && text_[i] != '>'; ++i) {
      type += std::isspace(static_cast<unsigned char>(text_[i])) != 0 ? "" : std::string(1, text_[i]);
    }
    return type == "<i1";
  }

  absl::Status bracket(char c) {
    const bool arrow = c == '>' && at_ > 0 && text_[at_ - 1] == '-';
    ++at_;
    if (c == '\n') {
      ++line_;
      alias_ = depth_ == 0 ? "" : alias_;
    }
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      ++depth_;
      return deep(depth_);
    }
    if (depth_ > 0 && (c == ')' || c == ']' || c == '}' || (c == '>' && !arrow))) {
      --depth_;
    }
    return absl::OkStatus();
  }

  absl::Status deep(int depth) {
    if (depth > kMostDeep) {
      return error(absl::StrCat("brackets and aliases stand more than ", kMostDeep,
                                " deep inside of each other, deeper than in any program"));
    }
    if (!alias_.empty()) {
      aliases_[alias_] = std::max(aliases_[alias_], depth + 1);
    }
    return absl::OkStatus();
  }

  const std::string& text_;
  const std::string& path_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int depth_ = 0;
  std::string alias_;  // that is being defined
  std::map<std::string, int> aliases_;
};

// Walks over the text for uses of values that nothing before them defines. MLIR 19 joins such a use with a definition
// of that name in a later function; if it then finds an error there, it frees operators that are still referred to.
class ValueChecker {
 public:
  ValueChecker(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  absl::Status run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '%') {
        WEFT_RETURN_IF_ERROR(value());
        continue;
      }
      if (c == '"' || text_.compare(at_, 2, "//") == 0) {
        skip(c == '"');
        continue;
      }
      if (text_.compare(at_, kFunction.size(), kFunction) == 0) {
        defined_.clear();
      }
      if (c == '(' || c == '{' || c == '[' || c == '<') {
        open_ += c;
      } else if (!open_.empty() && (c == ')' || c == '}' || c == ']' || (c == '>' && text_[at_ - 1] != '-'))) {
        open_.pop_back();
      }
      line_ += c == '\n' ? 1 : 0;
      startsLine_ = c == '\n' || (startsLine_ && c == ' ');
      ++at_;
    }
    return absl::OkStatus();
  }

 private:
  inline static const std::string kFunction = "func.func";

  // A string or a comment. A function in the generic form has its name in a string.
  void skip(bool isString) {
    const size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '\n' && !(isString && text_[at_] == '"')) {
      at_ += isString && text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_ + (isString ? 1 : 0), text_.size());
    if (isString && text_.compare(begin + 1, kFunction.size(), kFunction) == 0) {
      defined_.clear();
    }
    startsLine_ = false;
  }

  // One value; if it begins a line and others and '=' follow, the results of an operator.
  absl::Status value() {
    if (startsLine_ && results()) {
      return absl::OkStatus();
    }
    startsLine_ = false;
    const std::string name = nameAt(at_);
    const size_t next = text_.find_first_not_of(' ', at_);
    const bool isArgument = !open_.empty() && open_.back() == '(' && next != std::string::npos && text_[next] == ':';
    if (isArgument) {
      defined_.insert(name);
      return absl::OkStatus();
    }
    if (defined_.count(name) > 0) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ":", line_, ": error: nothing before defines %", name, "; define it before it is used"));
  }

  // `%0, %new_param:2 =`; false, and nothing is read, if it is none.
  bool results() {
    std::vector<std::string> names;
    size_t at = at_;
    do {
      at = text_.find_first_not_of(", ", at);
      if (at == std::string::npos || text_[at] != '%') {
        return false;
      }
      names.push_back(nameAt(at));
      at = std::min(text_.find_first_not_of(":0123456789 ", at), text_.size());
    } while (at < text_.size() && text_[at] == ',');
    if (at >= text_.size() || text_[at] != '=') {
      return false;
    }
    defined_.insert(names.begin(), names.end());
    at_ = at;
    return true;
  }

  // The name of the value at `at`, which moves behind it and the number of a result (`%2#1`).
  std::string nameAt(size_t& at) const {
    const auto isPart = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$' || c == '-';
    };
    const size_t begin = ++at;
    while (at < text_.size() && isPart(text_[at])) {
      ++at;
    }
    std::string name = text_.substr(begin, at - begin);
    if (at < text_.size() && text_[at] == '#') {
      at = std::min(text_.find_first_not_of("0123456789", at + 1), text_.size());
    }
    return name;
  }

  const std::string& text_;
  const std::string& path_;
  size_t at_ = 0;
  int64_t line_ = 1;
  bool startsLine_ = true;
  std::string open_;  // brackets
  std::set<std::string> defined_;
};

}  // namespace

absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> readModule(const std::string& text, const std::string& path,
                                                             mlir::MLIRContext& context) {
  if (text.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": error: no module, but other data (", text.size(),
                                                   " bytes); give the text of one, such as 00-input.mlir of a dump"));
  }
  WEFT_RETURN_IF_ERROR(NestingChecker(text, path).run());
  WEFT_RETURN_IF_ERROR(ValueChecker(text, path).run());
  // A module may lack what others add to it: a mesh, from a flag.
  context.loadAllAvailableDialects();
  std::string errors;
  int count = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && ++count <= kMostErrors) {
      llvm::raw_string_ostream stream(errors);
      stream << (count > 1 ? "\n" : "");
      if (auto place = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) {
        stream << place.getFilename().getValue() << ":" << place.getLine() << ": ";
      } else if (const std::string name = shortPlace(diagnostic.getLocation()); !name.empty()) {
        stream << name << ": ";
      }
      stream << "error: " << diagnostic.str();
    }
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context), path);
  if (!module) {
    return absl::InvalidArgumentError(errors.empty() ? path + ": the text is no module" : errors);
  }
  WEFT_RETURN_IF_ERROR(restoreModule(*module, path));
  return module;
}

}  // namespace weft
