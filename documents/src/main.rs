//! Reads one document from standard input: the child of [`tidegate_documents::Reader`] where no
//! other program is at hand.

fn main() -> std::io::Result<()> {
    tidegate_documents::serve()
}
