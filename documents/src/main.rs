//! Reads one document from standard input: the child process of [`tidegate_documents::Reader`] if
//! the caller has no other program for it.

fn main() -> std::io::Result<()> {
    tidegate_documents::serve()
}
