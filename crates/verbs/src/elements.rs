//! How a buffer is cut into the scatter/gather elements (SGEs) of a work request.

use rdma_sys::ibv_sge;

use super::MemoryRegion;

/// The buffer of a work request, in a MR.
pub(super) struct Buffer {
    /// Offset in the MR, in bytes.
    pub(super) offset: usize,
    pub(super) length_bytes: u32,
    /// Pieces that it is cut into.
    pub(super) sges: u32,
}

/// Where the elements of a work request begin, and how many they are.
pub(super) type List = (*mut ibv_sge, i32);

/// The elements of work requests with these buffers in `memory`, all in one piece of memory, and the list of each; `None`
/// if a buffer is not all in the MR.
pub(super) fn elements(
    memory: &MemoryRegion,
    buffers: impl Iterator<Item = Buffer>,
) -> Option<(Box<[ibv_sge]>, Vec<List>)> {
    let mut elements = Vec::new();
    let mut counts = Vec::new();
    for buffer in buffers {
        let before = elements.len();
        for (start, length) in pieces(buffer.length_bytes, buffer.sges) {
            let at = buffer.offset.checked_add(start as usize)?;
            elements.push(memory.element(at, length)?);
        }
        counts.push(elements.len() - before);
    }
    let mut boxed = elements.into_boxed_slice();
    let mut next = boxed.as_mut_ptr();
    let lists = counts
        .into_iter()
        .map(|count| {
            let list = next;
            next = next.wrapping_add(count);
            (list, i32::try_from(count).unwrap_or(i32::MAX))
        })
        .collect();
    Some((boxed, lists))
}

/// Offsets and lengths of the pieces of `length_bytes`, in order: as equal as can be, on boundaries of 8 bytes where each
/// has so many. No piece is empty, so a message of fewer bytes than `most` has a piece for each byte.
fn pieces(length_bytes: u32, most: u32) -> impl Iterator<Item = (u32, u32)> {
    let count = most.min(length_bytes).max(1);
    let is_wide = length_bytes / count >= 8;
    let boundary = move |piece: u32| {
        let even = u64::from(length_bytes) * u64::from(piece) / u64::from(count);
        if is_wide && piece < count { even as u32 & !7 } else { even as u32 }
    };
    (0..count).map(move |piece| (boundary(piece), boundary(piece + 1) - boundary(piece)))
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_follow_each_other_and_none_is_empty() {
        for length in [0, 1, 2, 3, 7, 8, 31, 32, 33, 100, 4096, 65_535, u32::MAX] {
            for count in [1, 2, 3, 4, 7, 16] {
                let all: Vec<_> = pieces(length, count).collect();
                assert_eq!(all.len() as u32, count.min(length).max(1));
                let mut end = 0;
                for &(start, bytes) in &all {
                    assert_eq!(start, end, "{length} in {count}");
                    assert!(bytes > 0 || length == 0, "{length} in {count}");
                    end = start + bytes;
                }
                assert_eq!(end, length);
                let lengths = || all.iter().map(|&(_, bytes)| bytes);
                let (least, most) = (lengths().min().unwrap(), lengths().max().unwrap());
                assert!(most - least <= 16, "{length} in {count}: {least} to {most}");
                if length / count >= 8 {
                    assert!(all.iter().all(|(start, _)| start % 8 == 0));
                }
            }
        }
    }
}
