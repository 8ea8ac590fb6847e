// What nobody said: the batch over the data-parallel axes, arguments as their first reader wants them, everything else
// whole; and what the micro-batches ask of the inputs.
#pragma once

#include "planner/derive/shardings.h"
#include "planner/request.h"

namespace weft {

// Is the split of the batch the user's alone? On a mesh without names his strategies, in numbers, say all of it.
bool batchIsUsers(const ProgramGraph& graph, const Mesh& mesh);

// Gives the batch of inputs without a layout the data-parallel axes, before parameters' layouts flow, unless a reader's
// batch has been given axes by the user, by what he said of others, or kept whole by him.
void seedBatches(const SettledGraph& graph, Fill fill, Shardings& shardings);

// Gives inputs without a layout the one their readers want, else the data-parallel axes for their batch; the others of
// seedBatches what their readers split besides.
void seedInputs(const SettledGraph& graph, Fill fill, Shardings& shardings);

// Lays inputs without a layout of the user's as their first reader needs them, where its splits were decided by price:
// these were held against others as if that took nothing (settle_conflicts.h).
void layInputsAsPriced(const SettledGraph& graph, Shardings& shardings);

// Gives arguments without a layout the one their first reader needs. States that nothing reads before the update stay
// open.
void closeArguments(const SettledGraph& graph, Shardings& shardings);
// Gives states without a layout that of the value which replaces them.
void closeStates(const SettledGraph& graph, Shardings& shardings);
// Factors that are still open are not split.
void closeOperators(Shardings& shardings);

// Data-parallel axes that the batch takes by default; none where the user asked for replication.
AxisList defaultAxes(const Mesh& mesh, Fill fill);

// Micro-batch p of every input must be the same rows, and micro-batches are cut inside a rank's rows: on one mesh all
// inputs' batches are split over the axes that all begin with. What an operator splits further is a slice inside the
// micro-batch. Error: an input whose layout the user gave would have to change.
absl::Status alignInputs(const SettledGraph& graph, Shardings& shardings);

// Where meshes differ, the batch is stripes, in each of which the micro-batches are cut: so many that every input's
// part and every mesh's data-parallel part is whole stripes. 0 with one mesh. Error: rows that do not divide so.
absl::StatusOr<int64_t> countStripes(const SettledGraph& graph, Fill fill, const Shardings& shardings);

}  // namespace weft
