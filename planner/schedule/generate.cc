#include "planner/schedule/generate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/schedule/loop_schedules.h"
#include "planner/schedule/v_schedules.h"
#include "runtime/base/status.h"

namespace weft::schedule {
namespace {

struct KindRow {
  Kind kind;
  const char* name;
  bool oneStage;       // v = 1 only
  bool vPlacement;     // v = 2 only
  const char* looped;  // the kind to take instead for v > 1
};

const std::vector<KindRow>& rows() {
  static const std::vector<KindRow> table{
      {Kind::kGpipe, "gpipe", true, false, "breadth_first"},
      {Kind::k1F1B, "1f1b", true, false, "interleaved"},
      {Kind::kInterleaved, "interleaved", false, false, ""},
      {Kind::kBreadthFirst, "breadth_first", false, false, ""},
      {Kind::kZbH1, "zb_h1", true, false, "zb_interleaved"},
      {Kind::kZbH2, "zb_h2", true, false, "zb_interleaved"},
      {Kind::kZbInterleaved, "zb_interleaved", false, false, ""},
      {Kind::kZbV, "zb_v", false, true, ""},
      {Kind::kVHalf, "v_half", false, true, ""},
      {Kind::kVMin, "v_min", false, true, ""},
      {Kind::kDualPipeV, "dualpipe_v", false, true, ""},
      {Kind::kSeq1F1B, "seq1f1b", true, false, "interleaved"},
  };
  return table;
}

const KindRow& rowOf(Kind kind) {
  return rows()[static_cast<size_t>(kind)];
}

absl::Status refuse(const Request& request, const std::string& reason) {
  return absl::InvalidArgumentError(absl::StrCat(kindName(request.kind), ": ", reason));
}

absl::Status checkSizes(const Request& request) {
  auto positive = [&](int32_t value, const char* what) {
    return value >= 1 && value <= kMaxIndex
               ? absl::OkStatus()
               : refuse(request, absl::StrCat(what, " is ", value, "; give a number from 1 to ", kMaxIndex));
  };
  WEFT_RETURN_IF_ERROR(positive(request.ranks, "the number of ranks"));
  WEFT_RETURN_IF_ERROR(positive(request.virtualStages, "the number of virtual stages"));
  WEFT_RETURN_IF_ERROR(positive(request.micros, "the number of micro-batches"));
  WEFT_RETURN_IF_ERROR(positive(request.sequenceSlices, "the number of sequence slices"));
  // Some generators draw all slots of all ranks, which grows with the square of the ranks.
  constexpr int32_t kMostRanks = 2048;
  if (request.ranks > kMostRanks) {
    return refuse(request,
                  absl::StrCat("the number of ranks is ", request.ranks, "; generators serve up to ", kMostRanks));
  }
  constexpr int64_t kMostPairs = 20'000'000;  // a table of about a gigabyte
  int64_t pairs = 1;
  for (int64_t factor : {request.ranks, request.virtualStages, request.micros, request.sequenceSlices}) {
    pairs *= factor;
    if (pairs > kMostPairs) {
      return refuse(request, absl::StrCat("more than ", kMostPairs,
                                          " pairs of stage and micro-batch; use fewer ranks, stages or micro-batches"));
    }
  }
  return absl::OkStatus();
}

absl::Status checkVirtual(const Request& request) {
  const KindRow& row = rowOf(request.kind);
  if (row.oneStage && request.virtualStages != 1) {
    return refuse(request, absl::StrCat("a rank has one stage, not ", request.virtualStages, "; use virtual 1, or ",
                                        row.looped, " for more"));
  }
  if (row.vPlacement && request.virtualStages != 2) {
    return refuse(request, absl::StrCat("a rank has two stages, on the way down and on the way up of a V, not ",
                                        request.virtualStages, "; use virtual 2"));
  }
  return absl::OkStatus();
}

bool grouped(Kind kind) {
  return kind == Kind::kInterleaved || kind == Kind::kZbInterleaved;
}

absl::Status checkGroup(const Request& request) {
  if (request.group == 0) {
    return absl::OkStatus();
  }
  if (!grouped(request.kind)) {
    return refuse(request, "has no groups of micro-batches; leave the group out, or use interleaved or zb_interleaved");
  }
  if (request.group < request.ranks) {
    return refuse(request, absl::StrCat("a group of ", request.group, " micro-batches does not fill ", request.ranks,
                                        " ranks: each virtual stage would wait for the one before it; use a group of ",
                                        request.ranks, " or more"));
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<Kind>& allKinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (const KindRow& row : rows()) {
      all.push_back(row.kind);
    }
    return all;
  }();
  return kinds;
}

std::string kindName(Kind kind) {
  return rowOf(kind).name;
}

absl::StatusOr<Kind> parseKind(const std::string& name) {
  std::vector<std::string> names;
  for (const KindRow& row : rows()) {
    if (row.name == name) {
      return row.kind;
    }
    names.push_back(row.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown kind of schedule '", name, "'; known: ", absl::StrJoin(names, ", ")));
}

bool cutsBackward(Kind kind) {
  switch (kind) {
    case Kind::kZbH1:
    case Kind::kZbH2:
    case Kind::kZbInterleaved:
    case Kind::kZbV:
    case Kind::kVHalf:
    case Kind::kVMin:
    case Kind::kDualPipeV:
      return true;
    case Kind::kGpipe:
    case Kind::k1F1B:
    case Kind::kInterleaved:
    case Kind::kBreadthFirst:
    case Kind::kSeq1F1B:
      return false;
  }
  return false;
}

int32_t defaultVirtualStages(Kind kind) {
  return rowOf(kind).vPlacement ? 2 : 1;
}

absl::Status legal(const Request& request) {
  WEFT_RETURN_IF_ERROR(checkSizes(request));
  WEFT_RETURN_IF_ERROR(checkVirtual(request));
  WEFT_RETURN_IF_ERROR(checkGroup(request));
  if (request.sequenceSlices > 1 && request.kind != Kind::kSeq1F1B) {
    return refuse(request, absl::StrCat("does not cut micro-batches along the sequence, but sequence slices are ",
                                        request.sequenceSlices, "; use 1 sequence slice, or seq1f1b"));
  }
  if (request.kind == Kind::kDualPipeV && request.micros < 2 * request.ranks) {
    return refuse(request, absl::StrCat("needs at least two micro-batches per rank, ", 2 * request.ranks, " for ",
                                        request.ranks, " ranks, not ", request.micros, "; use at least ",
                                        2 * request.ranks, ", or zb_v, which takes any number"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Table> generate(const Request& request) {
  WEFT_RETURN_IF_ERROR(legal(request));
  switch (request.kind) {
    case Kind::kGpipe:
    case Kind::kBreadthFirst:
      return breadthFirst(request);
    case Kind::k1F1B:
    case Kind::kSeq1F1B:
      return oneForwardOneBackward(request);
    case Kind::kInterleaved:
      return interleaved(request);
    case Kind::kZbH1:
    case Kind::kZbH2:
    case Kind::kZbInterleaved:
      return zeroBubble(request);
    case Kind::kZbV:
      return zeroBubbleV(request);
    case Kind::kVHalf:
    case Kind::kVMin:
      return buildingBlockV(request);
    case Kind::kDualPipeV:
      return dualPipeV(request);
  }
  return absl::InternalError("a kind of schedule without a generator");
}

}  // namespace weft::schedule
