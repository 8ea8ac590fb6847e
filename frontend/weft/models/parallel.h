// Rows of the tables that say how a transformer is split over the axes of a mesh.
#pragma once

#include <string>

#include "weft/graph.h"
#include "weft/modules.h"

namespace weft::models {

// A matmul of x [batch, rows, in] with a weight [in, out]: split by columns, so that each rank has some of the outputs
// (heads, hidden units) and no communication is needed.
inline ShardingRule byColumns(const std::string& operators, const nn::Parallel& parallel) {
  return {operators, {{parallel.data, "", ""}, {"", parallel.model}}};
}

// The matmul after it: split by rows of the weight, over which the ranks' products are summed. With `sequence` the sum
// is left split along the rows of x (a reduce-scatter instead of an all-reduce).
inline ShardingRule byRows(const std::string& operators, const nn::Parallel& parallel) {
  ShardingRule rule = {operators, {{parallel.data, "", parallel.model}, {parallel.model, ""}}};
  if (parallel.sequence) {
    rule.out = {{parallel.data, parallel.model, ""}};
  }
  return rule;
}

// A table [vocabulary, width] read at ids [batch, rows]: each rank holds some of the table's rows.
inline ShardingRule byVocabulary(const std::string& operators, const nn::Parallel& parallel) {
  ShardingRule rule = {operators, {{parallel.model, ""}, {parallel.data, ""}}};
  if (parallel.sequence) {
    rule.out = {{parallel.data, parallel.model, ""}};
  }
  return rule;
}

// The logits from that same table, x W^T: each rank has the logits of its rows of the table.
inline ShardingRule byTiedVocabulary(const std::string& operators, const nn::Parallel& parallel) {
  return {operators, {{parallel.data, "", ""}, {parallel.model, ""}}};
}

// The products of the nn::TransformerBlock modules whose names fit a pattern, "h*".
inline ShardingTable byBlocks(const std::string& blocks, const nn::Parallel& parallel) {
  return {
      // The weight is [width, 3, width]: q, k and v are each split.
      {blocks + ".qkv", {{parallel.data, "", ""}, {"", "", parallel.model}}},
      byRows(blocks + ".proj", parallel),
      byColumns(blocks + ".fc", parallel),
      byRows(blocks + ".out", parallel),
  };
}

}  // namespace weft::models
