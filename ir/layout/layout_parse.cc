// Reading the text form of a layout.
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/layout/layout.h"
#include "runtime/base/limits.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// Reads a layout from left to right; every error names the position.
class LayoutReader {
 public:
  LayoutReader(const std::string& text, const Mesh& mesh) : text_(text), mesh_(mesh) {}

  absl::StatusOr<Layout> read() {
    WEFT_RETURN_IF_ERROR(readDims());
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

  // Everything up to ',' or '}'.
  std::string readItem() {
    peek();
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '}') {
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
      std::vector<Axis>& axes = dims_.emplace_back();
      WEFT_RETURN_IF_ERROR(readBraces([&](const std::string& item) -> absl::Status {
        WEFT_ASSIGN_OR_RETURN(Axis axis, resolve(item));
        axes.push_back(axis);
        return absl::OkStatus();
      }));
    } while (take(','));
    return expect(']');
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
  size_t at_ = 0;
  std::vector<std::vector<Axis>> dims_;
  std::vector<Axis> used_;
  std::set<std::string> seen_;
};

}  // namespace

absl::StatusOr<Layout> Layout::parse(const std::string& text, const Mesh& mesh) {
  return LayoutReader(text, mesh).read();
}

}  // namespace weft
