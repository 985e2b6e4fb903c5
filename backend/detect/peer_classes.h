// Peer classes: which ranks do the same work, so that one of them can be told to be late beside the others.
//
// Two ranks are peers if there is a chain of groups from one to the other, in each of which both call collectives in every
// window, and if they do the same: the same kinds of operations in groups of the same sizes. A group makes no peers where it
// spans the stages of a pipeline, that is, where it holds a whole group whose ranks send to each other: stages share it,
// and each has its own work. A rank without peers is a class of its own.
//
//   4 stages by 2 replicas, sends in the world of 8, gradients in {0, 4} {1, 5} {2, 6} {3, 7}:
//     the world holds itself, and sends go through it       -> makes no peers, whatever else is called in it
//     {0, 4} calls all_reduce, and both ranks do the same   -> classes {0, 4} {1, 5} {2, 6} {3, 7}
//   2 by 2, tensors in {0, 1} {2, 3}, gradients in {0, 2} {1, 3}: 0 - 1 - 3 - 2   -> one class
//   4 stages alone                                          -> classes {0} {1} {2} {3}
//   data parallel, whatever rank 0 does in a group of its own that no other calls into every window   -> one class
//
// Decided from what ranks told last: a group that is not used any more makes no peers, one that is made later does once it
// is used. Groups of one rank count for nothing.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "backend/exchange/messages.h"

namespace straggler {

using PeerClass = std::vector<int>;  // global ranks, ascending

// `programs`: by position in `ranks`, which ascend. The classes in the order of their first ranks. Nothing where that
// cannot be said yet: a rank has not told its program, or not one of them has an operation in every window.
std::optional<std::vector<PeerClass>> peerClasses(const std::vector<int>& ranks,
                                                  const std::vector<std::optional<RankProgram>>& programs,
                                                  const std::map<GroupId, GroupInfo>& groups);

// Whether the ranks send to each other, as the stages of a pipeline do.
bool isPipeline(const std::vector<std::optional<RankProgram>>& programs);

}  // namespace straggler
