// The specification of nn.contract: "b t k, k n -> b t n".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/ADT/StringRef.h"

namespace weft::ir {

struct ContractSpec {
  std::vector<std::string> a;
  std::vector<std::string> b;
  std::vector<std::string> result;

  // In both operands and not in the result.
  bool isSummed(const std::string& letter) const;
  std::string print() const;
};

// Errors: other than two operands and a result, a letter twice in one tensor, a letter of only one tensor.
absl::StatusOr<ContractSpec> parseContractSpec(llvm::StringRef text);

}  // namespace weft::ir
