// Lines of a listing that say the same of several layers, as one.
//
//   all_reduce of h0.proj, for h0.add, 196608 bytes
//   all_reduce of h1.proj, for h1.add, 196608 bytes     ->     all_reduce of h0..h1.proj, for h0..h1.add, 196608 bytes
//
// Nothing is known of names of layers: a layer number is a number in the name of a line's operator, and lines are equal
// if all they show is equal but for that number, counted from the operator's own (h0.out read by h1.norm, and h1.out by
// h2.norm, are equal).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weft::tools {

struct FoldableLine {
  std::string name;                // of the operator, "h0.proj"
  std::vector<std::string> texts;  // that may name operators, of the same layer or of another one
  std::string rest;                // all else that is shown
};

struct FoldedLine {
  std::vector<size_t> members;  // indices of the lines, in their order
  std::string name;             // "h0..h11.proj"; of one line its own
  std::vector<std::string> texts;
};

// In the order of their first members. Where a name has several numbers, the one counts in which the most lines agree;
// of equals the first. Time: lines x length, but for sorting.
std::vector<FoldedLine> foldLayers(const std::vector<FoldableLine>& lines);

}  // namespace weft::tools
