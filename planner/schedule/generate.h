// Generators of schedules: from a kind and three sizes to a table.
//
//   absl::StatusOr<Table> table = generate({Kind::kZbH1, /*ranks=*/4, /*virtualStages=*/1, /*micros=*/8});
//
// p ranks, v virtual stages per rank, S = p v stages, m micro-batches. In a loop placement stage s lives on rank s mod
// p; in a V placement (v = 2) rank r has stages r and 2p-1-r, so the last stage sits beside the first.
//
//   kind            v     m      gradients  idle per rank                  pairs in flight
//
//   gpipe           1     any    B          (p-1)(f+b)                     m
//
//   1f1b            1     any    B          (p-1)(f+b)                     min(m, p-r)
//
//   interleaved     any   any    B          (p-1)(f+b)/v                   (v-1)N + 2(p-1-r) + 1
//
//   breadth_first   any   any    B          (p-1)(f+b)/v                   m v
//
//   zb_h1           1     any    I, W       (p-1) max(f, f+i-w)            p
//
//   zb_h2           1     any    I, W       (p-1) max(f, f+i-2w)           2p-1
//
//   zb_interleaved  any   any    I, W       (p-1) max(f, f+i-w)/v          about p v
//
//   zb_v            2, V  any    I, W       >= (p-1) f/2                   2p
//
//   v_half, v_min   2, V  any    I, W       more than zb_v                 about p + 2, 2p/3 + 2
//
//   dualpipe_v      2, V  >= 2p  B, some I  an F beside a B                2p+1
//
//   seq1f1b         1     any    B          (p-1)(f+b)/k                   p-1-r+k (slices)
//
// f, i, w are times of all stages of a rank, b = i + w. zb_v reaches its bound at f = i = w; v_half and v_min hold
// about 1/2 and 1/3 of what it holds; dualpipe_v puts an F and a B next to each other to hide communication.
//
// Sources: GPipe arXiv:1811.06965; 1F1B and interleaved arXiv:2104.04473; breadth first arXiv:2211.05953; zero bubble
// arXiv:2401.10241; V schedules arXiv:2405.15362; DualPipe arXiv:2412.19437; Seq1F1B arXiv:2406.03488. Idle times are
// up to the common end, without communication.
#pragma once

#include <string>
#include <vector>

#include "planner/schedule/table.h"

namespace weft::schedule {

enum class Kind {
  kGpipe,
  k1F1B,
  kInterleaved,
  kBreadthFirst,
  kZbH1,
  kZbH2,
  kZbInterleaved,
  kZbV,
  kVHalf,
  kVMin,
  kDualPipeV,
  kSeq1F1B,
};

// All kinds, in the order of the table above.
const std::vector<Kind>& allKinds();
std::string kindName(Kind kind);
// Errors: an unknown name, with the known ones.
absl::StatusOr<Kind> parseKind(const std::string& name);

// 2 for the V placements, else 1.
int32_t defaultVirtualStages(Kind kind);

// Does it run any gradients of weights later than those of inputs (I, W above)?
bool cutsBackward(Kind kind);

struct Request {
  Kind kind = Kind::k1F1B;
  int32_t ranks = 1;
  int32_t virtualStages = 1;
  int32_t micros = 1;
  // interleaved, zb_interleaved: how many micro-batches at least pass one virtual stage before the next one takes them;
  // 0 means as many as there are ranks. The micro-batches are cut into groups of at least that many, equal up to one
  // (N above is the greatest), so any number of them is served; fewer than that are one group.
  int32_t group = 0;
  // seq1f1b: slices of a micro-batch along its sequence (k above). The table then counts slices: micros x slices of
  // them.
  int32_t sequenceSlices = 1;
};

// Ok if generate() has a table for the request; else the reason and a remedy.
absl::Status legal(const Request& request);

// The table; validate() and prove() hold for it. Errors: those of legal().
absl::StatusOr<Table> generate(const Request& request);

}  // namespace weft::schedule
