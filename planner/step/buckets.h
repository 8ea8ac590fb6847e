// Which collectives of a function join into one bucket: reductions, and gathers of arguments or of results.
//
// A reduction may stand anywhere between the last operation that makes one of its operands and the first one that reads
// one of its results. So each one is an interval of the function, and a bucket is a point in the intervals of all its
// members. The fewest buckets come from taking, again and again, the reduction that is needed first, the point just
// before that need, and everything of the same key whose operands exist by then and that still fits. Nothing else
// moves. Intervals are looked up anew after every bucket, because a bucket may feed another reduction.
//
// What waits for its bucket takes room. Reductions that leave less than they read, and whose results are only kept
// (ZeRO-2: added to those of earlier micro-batches, or returned), are there to save that room: of those a bucket has at
// most a quarter of all bytes, and stands where the last of its operands is made, also one that stays alone. So do
// gathers of what the function returns. Where four buckets cannot hold all of that, they take one after another as it
// is made, and what is more than half a bucket stays alone: else large ones would wait for small ones of other layers.
// A gather of an argument that the function does not return (ZeRO-3) takes its room only while it is read: the results
// of a bucket of such have at most the bytes of the largest, whose room is needed in any case, or as many as are given
// for them: over many ranks the latency of a gather counts, and fewer of them take less time for more room.
//
// Two gradients, made at positions 0 and 1 and read at 4 and 5: one bucket just before 4.
//
//   0 make a   1 make b   2 reduce a   3 reduce b   4 read a   5 read b      ->   0  1  {2, 3}  4  5
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

// Bytes of operands that one bucket has at most, where nobody says otherwise.
inline constexpr int64_t kBucketBytes = int64_t{64} << 20;

struct BucketBytes {
  int64_t operands = kBucketBytes;
  int64_t gathered = 0;  // results of gathers that kLargest limits, where these may be more than the largest
};

// What limits a bucket beside the bytes that it may have in any case.
enum class BucketLimit : uint8_t { kNone, kQuarter, kLargest };

// A collective that may join others, in a function whose operations have the positions 0, 1, ...; mostly a reduction.
struct Reduction {
  int key = 0;        // only equal ones join: kind, groups, reduction, dimension, element type
  int64_t bytes = 0;  // of its operands
  int64_t position = 0;
  std::vector<int64_t> readers = {};    // positions of what reads its results; the function's end, if nothing does
  std::vector<int64_t> producers = {};  // positions of what makes its operands; arguments have none
  BucketLimit limit = BucketLimit::kNone;
  bool savesRoom = false;   // its operands take room until then, its results lie where there is room for them
  int64_t resultBytes = 0;  // of its results; kLargest alone asks for them
};

struct Bucket {
  // Reductions by index, in the order in which they stand: at least two, or one that moves to where it saves room.
  std::vector<size_t> members;
  // The bucket stands just before what was at this position in the beginning; that may be a member of an earlier bucket
  // by now.
  int64_t before = 0;
};

// The buckets in the order in which they are to be made; reductions that stay as they are are in none. `most`: of one
// bucket.
std::vector<Bucket> bucketsOf(const std::vector<Reduction>& reductions, const BucketBytes& most);

}  // namespace weft
