// A model from which values, edges and variables go, one after the other, and what has changed since it was looked at.
//
// Values and variables keep their numbers until rest(). Between two variables there is one edge at most.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "planner/assign/model.h"

namespace weft::assign {

// What has to be looked at, the lowest numbers first.
struct Changed {
  std::set<int> variables;
  std::set<int> edges;
};

class ShrinkingModel {
 public:
  ShrinkingModel(Model model, Ticks& ticks);

  int variables() const { return model_.variables(); }
  int valuesOf(int v) const { return model_.valuesOf(v); }
  bool isGone(int v) const { return gone_[v] != 0; }
  const std::vector<int>& alive(int v) const { return alive_[v]; }
  const Edge& edge(int number) const { return model_.edges[number]; }
  // The edges of a variable, by neighbor.
  const std::map<int, int>& edgesOf(int v) const { return edgesOf_[v]; }
  TableView view(int v, int w) const { return viewOf(model_, model_.edges[edgesOf_[v].at(w)], v); }
  const std::vector<Residence>& residencesOf(int v) const { return model_.residences[v]; }
  Cost cost(int v, int x) const { return model_.costs[v][x]; }
  void addCost(int v, int x, Cost more) { model_.costs[v][x] = plus(model_.costs[v][x], more); }
  Changed& changed() { return changed_; }

  // Drops the values of a variable for which `goes` holds. Returns how many did.
  template <typename Goes>
  size_t dropValues(int v, const Goes& goes) {
    const size_t dropped = std::erase_if(alive_[v], goes);
    if (dropped > 0) {
      touch(v);
    }
    return dropped;
  }
  // Adds a table between two variables to the one that joins them, if any does.
  void join(const Edge& edge);
  void part(int v, int w);
  // Takes a variable without edges away; its memory as with its first value.
  void remove(int v);
  // Its memory becomes that of another variable, each of whose values leaves it `values`.
  void moveMemory(int v, int to, const std::vector<int>& values);
  // Is its memory the same with all values?
  bool takesTheSame(int v) const;

  // Makes the rows few, and drops values that take more than a row has for them, whatever the others take. Is one
  // gone? No rows can hold the least: a variable without values is left.
  bool tightenRows();

  // Is a variable left without values?
  bool isImpossible() const { return impossible_; }
  // The model of what is left, numbered anew; empty where that is impossible.
  Model rest();

 private:
  void touch(int v);
  void settleRows();
  Table selectedTable(const Edge& edge) const;

  Model model_;  // edges that are gone have no table
  Ticks& ticks_;
  std::vector<std::vector<int>> alive_;      // values of each variable that are left
  std::vector<std::map<int, int>> edgesOf_;  // of each variable: by neighbor
  std::vector<char> gone_;                   // variables
  std::vector<int64_t> taken_;  // by variables that are gone: from each row on, more than in the row before
  bool impossible_ = false;
  Changed changed_;
};

}  // namespace weft::assign
