// A typical instance of every operator of the dialect: what it says of itself on them is what docs/operators.md lists,
// and `weft strategy` is tested on them.
#pragma once

#include <string>
#include <vector>

namespace weft::tools {

struct OperatorExample {
  std::string op;
  std::string shapes;     // of its operands, as `weft strategy` takes them
  std::string strategy;   // for two ranks: the first dimension that may be split is split
  std::string more = "";  // what does not follow: an attribute, or --results and a shape
  std::string asks = "";  // what the message without it says to write
};

const std::vector<OperatorExample>& operatorExamples();

}  // namespace weft::tools
