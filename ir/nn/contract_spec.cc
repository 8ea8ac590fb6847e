#include "ir/nn/contract_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/ADT/SmallVector.h"

namespace weft::ir {
namespace {

bool contains(const std::vector<std::string>& letters, const std::string& letter) {
  return std::find(letters.begin(), letters.end(), letter) != letters.end();
}

std::vector<std::string> lettersOf(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ' ', -1, false);
  return {parts.begin(), parts.end()};
}

absl::Status error(llvm::StringRef text, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("specification \"", text.str(), "\": ", what));
}

// Each letter once in `letters`, and in at least one of the two others.
absl::Status checkLetters(llvm::StringRef text, const std::vector<std::string>& letters,
                          const std::vector<std::string>& other, const std::vector<std::string>& third) {
  for (const std::string& letter : letters) {
    if (std::count(letters.begin(), letters.end(), letter) > 1) {
      return error(text, absl::StrCat("'", letter, "' stands twice in one tensor"));
    }
    if (!contains(other, letter) && !contains(third, letter)) {
      return error(text, absl::StrCat("'", letter, "' stands in one tensor only; sum over it first"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool ContractSpec::isSummed(const std::string& letter) const {
  return contains(a, letter) && contains(b, letter) && !contains(result, letter);
}

std::string ContractSpec::print() const {
  return absl::StrCat(absl::StrJoin(a, " "), ", ", absl::StrJoin(b, " "), " -> ", absl::StrJoin(result, " "));
}

absl::StatusOr<ContractSpec> parseContractSpec(llvm::StringRef text) {
  auto [operands, result] = text.split("->");
  auto [a, b] = operands.split(',');
  if (!text.contains("->") || operands.count(',') != 1 || result.contains(',')) {
    return error(text, "expected two operands and one result, like \"m k, k n -> m n\"");
  }
  ContractSpec spec{lettersOf(a), lettersOf(b), lettersOf(result)};
  for (const absl::Status& status :
       {checkLetters(text, spec.a, spec.b, spec.result), checkLetters(text, spec.b, spec.a, spec.result),
        checkLetters(text, spec.result, spec.a, spec.b)}) {
    if (!status.ok()) {
      return status;
    }
  }
  return spec;
}

}  // namespace weft::ir
