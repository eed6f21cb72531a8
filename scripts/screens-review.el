;;; screens-review.el --- A model that reviews hunks  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model for scripts/screens-review.  About a hunk it says that the first line that
;; the hunk adds is worth a look, and code it rewrites with a comment.  It writes its
;; address to the file that the command line names, and a line for each question to
;; that file with ".asked".

;;; Code:

(require 'llm-ert-model)

(defconst contexture-screens-review--file (pop command-line-args-left)
  "File for the address.")

(defun contexture-screens-review--answer (request)
  "Return what the model says to REQUEST."
  (let ((prompt (plist-get request :prompt)))
    (append-to-file (format "%s\n" (car (split-string prompt "\n"))) nil
                    (concat contexture-screens-review--file ".asked"))
    (cond ((string-match "A review says of line" prompt)
           (with-temp-buffer
             (insert prompt)
             (goto-char (point-max))
             (let* ((end (progn (re-search-backward "^```") (point)))
                    (fence (progn (re-search-backward "^```.*\n") (match-end 0))))
               (goto-char fence)
               (forward-line)
               (list (concat "```\n" (buffer-substring fence (point)) ";; Looked at.\n"
                             (buffer-substring (point) end) "```\n")))))
          ((string-match "^ *\\([0-9]+\\) \\+" prompt)
           (list (format "- %s: this line is new; is there a test of it?"
                         (match-string 1 prompt))))
          ((string-match "^ *\\([0-9]+\\) " prompt)
           (list (format "- %s: something was removed here; is it needed elsewhere?"
                         (match-string 1 prompt))))
          (t (list "Nothing to say.")))))

(llm-ert-with-model (make-list 1000 #'contexture-screens-review--answer)
  (write-region (llm-ert-url) nil contexture-screens-review--file)
  (while t (accept-process-output nil 1)))

;;; screens-review.el ends here
