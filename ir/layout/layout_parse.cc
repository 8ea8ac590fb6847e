// Reading the text forms of layouts and of annotations.
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ir/layout/annotation.h"
#include "ir/layout/layout.h"
#include "runtime/base/limits.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Reads a layout from left to right; every error names the position. `annotation`: where open dimensions and
// priorities go; without it they are errors.
class LayoutReader {
 public:
  LayoutReader(const std::string& text, const Mesh& mesh, Annotation* annotation = nullptr)
      : text_(text), mesh_(mesh), annotation_(annotation) {}

  absl::StatusOr<Layout> read() {
    WEFT_RETURN_IF_ERROR(annotation_ != nullptr && peek() == '(' ? readTuple() : readDims());
    Layout layout(dims_);
    while (peek() != '\0') {
      std::string word = readWord();
      if (!seen_.insert(word).second) {
        return error(absl::StrCat("'", word, "' stands twice"));
      }
      if (word == "partial") {
        WEFT_RETURN_IF_ERROR(readPartial(layout));
      } else if (word == "pad") {
        WEFT_RETURN_IF_ERROR(readPads(layout));
      } else {
        return error("expected partial{axis:kind}, pad{dimension:size} or the end");
      }
    }
    return layout;
  }

 private:
  absl::Status error(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("layout '", text_, "', position ", at_, ": ", what));
  }

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    bool found = peek() == c;
    at_ += found ? 1 : 0;
    return found;
  }

  absl::Status expect(char c) {
    if (take(c)) {
      return absl::OkStatus();
    }
    std::string found = peek() == '\0' ? "the end" : absl::StrCat("'", std::string(1, peek()), "'");
    return error(absl::StrCat("expected '", std::string(1, c), "', found ", found));
  }

  // Letters up to a brace.
  std::string readWord() {
    peek();
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= 'a' && text_[at_] <= 'z') {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  // Everything up to ',' or the closing brace.
  std::string readItem(char close = '}') {
    peek();
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != close) {
      ++at_;
    }
    return std::string(absl::StripAsciiWhitespace(text_.substr(begin, at_ - begin)));
  }

  absl::StatusOr<Axis> resolve(const std::string& item) {
    absl::StatusOr<Axis> axis = mesh_.resolve(item);
    if (!axis.ok()) {
      return error(std::string(axis.status().message()));
    }
    for (const Axis& used : used_) {
      if (overlap(used, *axis)) {
        return error(absl::StrCat("axis ", mesh_.name(*axis), " is used twice (", mesh_.name(used),
                                  " stands before); an axis may stand once"));
      }
    }
    used_.push_back(*axis);
    return *axis;
  }

  // {item,item}; calls `each` on every item.
  template <typename Each>
  absl::Status readBraces(Each each) {
    WEFT_RETURN_IF_ERROR(expect('{'));
    if (take('}')) {
      return absl::OkStatus();
    }
    do {
      WEFT_RETURN_IF_ERROR(each(readItem()));
    } while (take(','));
    return expect('}');
  }

  absl::Status readDims() {
    WEFT_RETURN_IF_ERROR(expect('['));
    if (take(']')) {
      return absl::OkStatus();
    }
    do {
      AxisList& axes = dims_.emplace_back();
      bool open = false;
      WEFT_RETURN_IF_ERROR(readBraces([&](const std::string& item) -> absl::Status {
        if (open) {
          return error("'?' stands last in a dimension");
        }
        if (annotation_ != nullptr && item == "?") {
          open = true;
          return absl::OkStatus();
        }
        return takeAxis(item, axes);
      }));
      if (annotation_ != nullptr) {
        annotation_->open.push_back(open);
        WEFT_RETURN_IF_ERROR(readPriority());
      }
    } while (take(','));
    return expect(']');
  }

  absl::Status takeAxis(const std::string& item, AxisList& axes) {
    WEFT_ASSIGN_OR_RETURN(const Axis axis, resolve(item));
    axes.push_back(axis);
    return absl::OkStatus();
  }

  // p1 behind the braces of a dimension.
  absl::Status readPriority() {
    std::optional<int64_t>& priority = annotation_->priorities.emplace_back();
    if (peek() != 'p' || at_ + 1 >= text_.size() || text_[at_ + 1] < '0' || text_[at_ + 1] > '9') {
      return absl::OkStatus();
    }
    const size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      ++at_;
    }
    const absl::StatusOr<int64_t> number = parseInteger(text_.substr(begin, at_ - begin), {0, kMaxPriority});
    if (!number.ok()) {
      return error(std::string(number.status().message()));
    }
    priority = *number;
    return absl::OkStatus();
  }

  // MindSpore's tuples: (dp,None), ("dp",("tp","sp")).
  absl::Status readTuple() {
    WEFT_RETURN_IF_ERROR(expect('('));
    while (!take(')')) {
      AxisList& axes = dims_.emplace_back();
      annotation_->open.push_back(false);
      annotation_->priorities.emplace_back();
      const bool nested = take('(');
      do {
        const std::string item = unquoted(readItem(')'));
        if (!item.empty() && item != "None") {
          WEFT_RETURN_IF_ERROR(takeAxis(item, axes));
        }
      } while (nested && take(','));
      if (nested) {
        WEFT_RETURN_IF_ERROR(expect(')'));
      }
      if (peek() != ')') {
        WEFT_RETURN_IF_ERROR(expect(','));
      }
    }
    return absl::OkStatus();
  }

  static std::string unquoted(const std::string& item) {
    const bool quoted = item.size() >= 2 && (item[0] == '"' || item[0] == '\'') && item.back() == item[0];
    return quoted ? item.substr(1, item.size() - 2) : item;
  }

  absl::Status readPartial(Layout& layout) {
    std::vector<Partial> partial;
    WEFT_RETURN_IF_ERROR(readBraces([&](const std::string& item) -> absl::Status {
      size_t colon = item.rfind(':');
      std::string kind = colon == std::string::npos ? "" : item.substr(colon + 1);
      for (ReduceKind candidate : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin}) {
        if (kind == reduceKindName(candidate)) {
          WEFT_ASSIGN_OR_RETURN(Axis axis, resolve(item.substr(0, colon)));
          partial.push_back({axis, candidate});
          return absl::OkStatus();
        }
      }
      return error(absl::StrCat("'", item, "' is not axis:sum, axis:max or axis:min"));
    }));
    layout.setPartial(std::move(partial));
    return absl::OkStatus();
  }

  absl::Status readPads(Layout& layout) {
    return readBraces([&](const std::string& item) -> absl::Status {
      size_t colon = item.find(':');
      const absl::StatusOr<int64_t> d = parseInteger(item.substr(0, colon));
      const absl::StatusOr<int64_t> size =
          parseInteger(colon == std::string::npos ? "" : item.substr(colon + 1), {1, kMaxBytes});
      if (!d.ok() || !size.ok()) {
        return error(absl::StrCat("'", item, "' is not dimension:size"));
      }
      if (*d < 0 || *d >= static_cast<int64_t>(layout.dimensions())) {
        return error(
            absl::StrCat("pad of dimension ", *d, ", but the layout has ", layout.dimensions(), " dimensions"));
      }
      layout.setPad(*d, *size);
      return absl::OkStatus();
    });
  }

  const std::string& text_;
  const Mesh& mesh_;
  Annotation* annotation_;
  size_t at_ = 0;
  AxisLists dims_;
  AxisList used_;
  std::set<std::string> seen_;
};

}  // namespace

absl::StatusOr<Layout> Layout::parse(const std::string& text, const Mesh& mesh) {
  return LayoutReader(text, mesh).read();
}

std::string annotationText(const std::vector<std::string>& names) {
  const auto dim = [](std::string* out, const std::string& name) {
    absl::StrAppend(out, "{", name == "None" ? "" : name, "}");
  };
  return absl::StrCat("[", absl::StrJoin(names, ",", dim), "]");
}

absl::StatusOr<Annotation> parseAnnotation(const std::string& text, const Mesh& mesh) {
  Annotation annotation;
  WEFT_ASSIGN_OR_RETURN(annotation.layout, LayoutReader(text, mesh, &annotation).read());
  return annotation;
}

}  // namespace weft
