//! What the byte fuzzing targets share.

/// Makes up to four changes to a valid text, as the given bytes choose. Each change inserts, replaces or removes a piece.
pub(crate) fn bent<P: Copy>(bytes: &[u8], sound: &[P], pieces: &[P]) -> Vec<P> {
    let mut text = sound.to_vec();
    let (count, changes) = bytes.split_first().unwrap_or((&0, &[]));
    for change in changes.chunks_exact(3).take(usize::from(*count) % 5) {
        let &[action, place, piece] = change else {
            break;
        };
        let start = usize::from(place) % (text.len() + 1);
        let end = (start + usize::from(action % 3 != 0)).min(text.len());
        let added = pieces.get(usize::from(piece) % pieces.len());
        text.splice(start..end, added.filter(|_| action % 3 != 2).copied());
    }
    text
}
