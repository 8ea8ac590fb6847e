// From layouts on the mesh to the virtual line of the reshard search, and back.
#pragma once

#include <vector>

#include "ir/layout/reshard_space.h"

namespace weft::reshard {

// What the search may not touch: dimensions that keep their axes, and axes that stay where they are.
struct Fixed {
  std::vector<bool> dims;
  AxisList axes;
};

// The virtual line for one pair of layouts (canonical, space axes only outside the fixed dimensions).
class VirtualLine {
 public:
  // Where axes may be cut: where the end layouts cut and sizes that trade places ask for it, or at every divisor.
  enum class Cuts { kWhereAsked, kEverywhere };

  // `stored` is the stored shape; sizes of dimensions decide which cuts can be of use.
  VirtualLine(const Mesh& mesh, const Layout& from, const Layout& to, const Shape& stored, const Fixed& fixed,
              Cuts cuts);

  const std::vector<int64_t>& cuts() const { return cuts_; }
  Digits digitsOf(const AxisList& axes) const;
  AxisList axesOf(const Digits& digits) const;

 private:
  // A part of the line of ranks that no layout cuts in a way that all layouts share; `inner` are further cuts inside
  // it, relative to its begin.
  struct Atom {
    int64_t pre = 1;
    int64_t size = 1;
    std::vector<int64_t> inner;
    bool mixed = false;  // the two layouts cut it in ways that do not nest
    bool fixed = false;
    bool moving = false;  // the two layouts put it at different places of a dimension
    int64_t place = -1;   // order of first mention; -1 = free in both
    int64_t virtualPre = 1;
    int64_t end() const { return pre * size; }
  };

  void cutAtoms(const Mesh& mesh, const AxisList& mentioned);
  void markAtoms(const Layout& from, const Layout& to, const Fixed& fixed, const AxisList& mentioned);
  void cutEverywhere();
  void addMixedCuts();
  void addTradeCuts(const Shape& sizes);
  void limitCuts();
  void arrange();
  size_t cutCount() const;
  uint8_t cutIndex(int64_t value) const;

  std::vector<Atom> atoms_;
  std::vector<int64_t> cuts_;
};

}  // namespace weft::reshard
