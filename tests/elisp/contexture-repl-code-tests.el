;;; contexture-repl-code-tests.el --- Tests of asking about code  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Asking from buffers with code, and using the code in answers.

;;; Code:

(require 'contexture-repl-test-helper)

(defmacro contexture-repl-code-tests--with (answers &rest body)
  "Run BODY in a buffer of Lisp with a model that says ANSWERS.
SESSION is the buffer of the session, and point is in the definition."
  (declare (indent 1) (debug t))
  `(contexture-repl-test-with ,answers
     (let ((session (current-buffer)) (contexture-repl-code-tests--seen nil))
       (ignore session)
       (contexture-test-visiting
           (contexture-test-file "a.el" ";; top" "" "(defun f (x)" "  (car x))" "" ";; end")
         (goto-char (point-min))
         (search-forward "(car")
         ,@body))))

(defvar contexture-repl-code-tests--seen nil
  "The question that was looked at last.")

(defun contexture-repl-code-tests--asked ()
  "Wait until something was asked and answered, and return what it was."
  (contexture-test-until (buffer-live-p contexture-repl--last-buffer))
  (with-current-buffer contexture-repl--last-buffer
    (contexture-test-until (not (memq (contexture-repl--last :user)
                                      (list nil contexture-repl-code-tests--seen))))
    (contexture-repl-test-wait)
    (setq contexture-repl-code-tests--seen (contexture-repl--last :user))
    (contexture-repl--message-text contexture-repl-code-tests--seen)))

(defun contexture-repl-code-tests--apply (session answer)
  "Apply the last code of SESSION, and say ANSWER, t or nil, when asked.
Return the text that was proposed."
  (let (proposed)
    (cl-letf* (((symbol-function 'y-or-n-p) (lambda (_) answer))
               (contexture-repl-compare-function
                (lambda (_buffer proposal done)
                  (setq proposed (with-current-buffer proposal (buffer-string)))
                  (funcall done))))
      (with-current-buffer session
        (goto-char (point-max))
        (contexture-repl-apply)))
    proposed))

(defconst contexture-repl-code-tests--cdr "Sure:\n```elisp\n(defun f (x)\n  (cdr x))\n```\n"
  "An answer with other code.")

;;;; Asking

(ert-deftest contexture-repl-code-explains-the-definition-at-point ()
  (contexture-repl-code-tests--with '(("It takes the first."))
    (contexture-explain-code)
    (let ((asked (contexture-repl-code-tests--asked)))
      (should (string-prefix-p "Explain the code below" asked))
      (should (string-search "a.el:3-4:\n```elisp\n(defun f (x)\n  (car x))\n```" asked)))
    (should (get-buffer-window session))))

(ert-deftest contexture-repl-code-explains-with-a-question ()
  (contexture-repl-code-tests--with '(("Because."))
    (contexture-explain-code "Why car?")
    (should (string-search "The question is: Why car?"
                           (contexture-repl-code-tests--asked)))))

(ert-deftest contexture-repl-code-takes-the-region-first ()
  (contexture-repl-code-tests--with '(("Code."))
    (transient-mark-mode)
    (goto-char (point-min))
    (push-mark (line-end-position) t t)
    (contexture-review-code)
    (let ((asked (contexture-repl-code-tests--asked)))
      (should (string-prefix-p "Review the code below" asked))
      (should (string-search "```elisp\n;; top\n```" asked)))))

(ert-deftest contexture-repl-code-documents-and-tests ()
  (contexture-repl-code-tests--with '(("Doc.") ("Tests."))
    (contexture-document-defun)
    (should (string-prefix-p "Write the documentation" (contexture-repl-code-tests--asked)))
    (contexture-write-tests)
    (should (string-search "framework that is usual in elisp"
                           (contexture-repl-code-tests--asked)))))

(ert-deftest contexture-repl-code-fixes-an-error ()
  (contexture-repl-code-tests--with '(("Use cadr."))
    (contexture-fix-error "Wrong type argument: listp, 1")
    (let ((asked (contexture-repl-code-tests--asked)))
      (should (string-search "Wrong type argument: listp, 1" asked))
      (should (string-search "(car x)" asked)))))

(ert-deftest contexture-repl-code-asks-what-is-wrong ()
  (contexture-repl-code-tests--with '(("Use cadr."))
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "It fails")))
      (contexture-fix-error nil))
    (should (string-search "It fails" (contexture-repl-code-tests--asked)))))

(ert-deftest contexture-repl-code-fixes-where-a-compilation-leads ()
  (contexture-repl-code-tests--with '(("Use cadr."))
    (let ((directory default-directory))
      (with-temp-buffer
        (setq default-directory directory)
        (insert "make\na.el:4:3: error: no such function\n")
        (compilation-mode)
        (let ((inhibit-read-only t)) (compilation--ensure-parse (point-max)))
        (goto-char (point-min))
        (forward-line 1)
        (contexture-fix-error nil)))
    (let ((asked (contexture-repl-code-tests--asked)))
      (should (string-search "a.el:4:3: error: no such function" asked))
      (should (string-search "(defun f (x)" asked)))))

(ert-deftest contexture-repl-code-needs-code ()
  (contexture-repl-code-tests--with nil
    (goto-char (point-max))
    (erase-buffer)
    (contexture-test-user-error "Mark a region" (contexture-explain-code))
    (contexture-test-user-error "Say how" (contexture-rewrite-region " "))))

(ert-deftest contexture-repl-code-sends-a-question-about-the-region ()
  (contexture-repl-code-tests--with '(("Yes."))
    (contexture-send-region "Is it fast?")
    (should (string-prefix-p "Is it fast?\n\nFrom " (contexture-repl-code-tests--asked)))))

(ert-deftest contexture-repl-code-puts-the-region-behind-the-prompt ()
  (contexture-repl-code-tests--with nil
    (contexture-send-region "")
    (with-current-buffer session
      (should (string-match-p "\\`From .*\n```elisp\n(defun f (x)\n  (car x))\n```\n\n\\'"
                              (contexture-repl--text))))
    (contexture-ert-should-not-called 'chat)))

(ert-deftest contexture-repl-code-fences-cannot-be-closed-from-inside ()
  (should (equal (contexture-repl-code--fence "a ```` b ``` c") "`````"))
  (should (equal (contexture-repl-code--fence "a") "```")))

(ert-deftest contexture-repl-code-waits-for-no-answer-that-comes ()
  (contexture-repl-code-tests--with '(("One" hang))
    (contexture-explain-code)
    (contexture-test-until (with-current-buffer session (contexture-repl--busy-p)))
    (contexture-test-user-error "still being answered" (contexture-explain-code))))

(ert-deftest contexture-repl-code-inserts-the-last-response ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (contexture-explain-code)
    (contexture-repl-code-tests--asked)
    (goto-char (point-max))
    (contexture-insert-last-response)
    (should (string-suffix-p contexture-repl-code-tests--cdr (buffer-string)))
    (contexture-insert-last-response t)
    (should (string-suffix-p "```\n(defun f (x)\n  (cdr x))\n" (buffer-string)))))

(ert-deftest contexture-repl-code-without-a-session-inserts-nothing ()
  (with-temp-buffer
    (let ((contexture-repl--last-buffer nil))
      (contexture-test-user-error "No session is open" (contexture-insert-last-response)))))

;;;; Using code

(ert-deftest contexture-repl-block-copies-and-inserts ()
  (contexture-repl-test-with '(("One:\n```\na\n```\ntwo:\n```\nb\n```\n"))
    (contexture-test-user-error "No answer here has a block of code" (contexture-repl-copy-block))
    (contexture-repl-test-send "Q")
    (contexture-repl-copy-block)
    (should (equal (current-kill 0) "b\n"))
    (goto-char (point-min))
    (contexture-repl-next-block)
    (contexture-repl-copy-block)
    (should (equal (current-kill 0) "a\n"))
    (contexture-repl-next-block)
    (should (looking-at-p "b"))
    (contexture-repl-previous-block)
    (should (looking-at-p "a"))
    (contexture-test-user-error "no other block of code" (contexture-repl-previous-block))
    (with-temp-buffer
      (let ((target (current-buffer)))
        (with-current-buffer contexture-repl--last-buffer
          (contexture-repl-insert-block target))
        (should (equal (buffer-string) "a\n"))))))

(ert-deftest contexture-repl-block-is-never-that-of-the-question ()
  (contexture-repl-test-with '(("Only words.") ("So:\n```\nanswer\n```\n") ("Yes."))
    (contexture-repl-test-send "What of this?\n```\nquestion\n```")
    (contexture-test-user-error "No answer here has a block of code" (contexture-repl-copy-block))
    (with-temp-buffer
      (contexture-test-user-error "No answer has a block of code" (contexture-insert-last-response t)))
    (contexture-repl-test-send "And?")
    (contexture-repl-test-send "Rather this?\n```\nquestion\n```")
    (contexture-repl-copy-block)
    (should (equal (current-kill 0) "answer\n"))
    (with-temp-buffer
      (contexture-insert-last-response t)
      (should (equal (buffer-string) "answer\n")))))

(ert-deftest contexture-repl-block-applies-what-is-accepted ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (goto-char (point-max))
    (insert ";; not saved\n")
    (undo-boundary)
    (search-backward "(car")
    (contexture-rewrite-region "use cdr")
    (should (string-prefix-p "Rewrite the code below: use cdr.\n"
                             (contexture-repl-code-tests--asked)))
    (should (string-search "(cdr x))\n\n;; end\n;; not saved"
                           (contexture-repl-code-tests--apply session t)))
    (should (equal (buffer-string)
                   ";; top\n\n(defun f (x)\n  (cdr x))\n\n;; end\n;; not saved\n"))
    (should (buffer-modified-p))
    (setq last-command 'other)
    (undo)
    (should (equal (buffer-string)
                   ";; top\n\n(defun f (x)\n  (car x))\n\n;; end\n;; not saved\n"))))

(ert-deftest contexture-repl-block-changes-nothing-that-is-not-accepted ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (let ((before (buffer-string)))
      (contexture-rewrite-region "use cdr")
      (contexture-repl-code-tests--asked)
      (contexture-repl-code-tests--apply session nil)
      (should (equal (buffer-string) before))
      (should-not (cl-some (lambda (buffer)
                             (string-match-p "proposal" (buffer-name buffer)))
                           (buffer-list))))))

(ert-deftest contexture-repl-block-applies-where-the-code-is-by-now ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (contexture-rewrite-region "use cdr")
    (contexture-repl-code-tests--asked)
    (goto-char (point-min))
    (insert ";; new\n")
    (contexture-repl-code-tests--apply session t)
    (should (equal (buffer-string)
                   ";; new\n;; top\n\n(defun f (x)\n  (cdr x))\n\n;; end\n"))
    (contexture-test-user-error "already has that code"
      (contexture-repl-code-tests--apply session t))))

(ert-deftest contexture-repl-block-finds-code-in-a-file-opened-again ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (let ((file buffer-file-name))
      (contexture-rewrite-region "use cdr")
      (contexture-repl-code-tests--asked)
      (kill-buffer)
      (contexture-repl-code-tests--apply session t)
      (with-current-buffer (find-buffer-visiting file)
        (should (string-search "(cdr x))" (buffer-string)))
        (erase-buffer)
        (set-buffer-modified-p nil)
        (kill-buffer))
      (with-temp-file file (insert "other\n"))
      (contexture-test-user-error "no longer has the code you asked about"
        (contexture-repl-code-tests--apply session t)))))

(ert-deftest contexture-repl-block-does-not-guess-where-code-belongs ()
  (contexture-repl-test-with (list (list contexture-repl-code-tests--cdr))
    (contexture-repl-test-send "Q")
    (contexture-test-user-error "does not know where" (contexture-repl-apply))))

(ert-deftest contexture-repl-block-respects-a-read-only-buffer ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (contexture-rewrite-region "use cdr")
    (contexture-repl-code-tests--asked)
    (setq buffer-read-only t)
    (should-error (contexture-repl-code-tests--apply session t) :type 'buffer-read-only)))

(ert-deftest contexture-repl-block-is-compared-with-ediff ()
  (contexture-repl-code-tests--with (list (list contexture-repl-code-tests--cdr))
    (contexture-rewrite-region "use cdr")
    (contexture-repl-code-tests--asked)
    (let ((ediff-window-setup-function #'ediff-setup-windows-plain)
          (ediff-keep-variants t)
          (answered nil))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) (setq answered t))))
        (delete-other-windows)
        (set-window-buffer (selected-window) (current-buffer))
        (set-window-buffer (split-window) session)
        (with-current-buffer session
          (goto-char (point-max))
          (contexture-repl-apply))
        (let ((control (cl-find-if (lambda (buffer)
                                     (string-match-p "\\`\\*Ediff Control"
                                                     (buffer-name buffer)))
                                   (buffer-list))))
          (should control)
          (with-current-buffer control
            (ediff-really-quit nil)))
        (contexture-test-until answered))
      (should (get-buffer-window session))
      (should (get-buffer-window))
      (should (string-search "(cdr x))" (buffer-string))))))

(provide 'contexture-repl-code-tests)
;;; contexture-repl-code-tests.el ends here
