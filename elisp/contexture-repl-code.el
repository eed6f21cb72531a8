;;; contexture-repl-code.el --- Ask about code from its buffer  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Commands for buffers with code that ask a model to explain, document,
;; review, test, fix or rewrite the region or the definition around point.
;; Templates of the server make the questions; you can replace them with
;; your own of the same names.  The answer appears in the session; if it
;; has new code, `contexture-repl-apply' there proposes it at its place, as
;; `contexture-rewrite' does while the answer comes.

;;; Code:

(require 'contexture-repl)
(require 'contexture-sources)
(eval-when-compile (require 'subr-x))

(declare-function compilation-buffer-p "compile" (buffer))

;;;; The code to ask about

(defun contexture-repl-code--bounds ()
  "Return the bounds of the region, or else of the definition around point."
  (cond ((use-region-p) (cons (region-beginning) (region-end)))
        ((contexture--defun-bounds))
        (t (user-error "Mark a region, or put point in a definition"))))

(defun contexture-repl-code--take (bounds)
  "Return (TEXT . ORIGIN) for the code between BOUNDS.
TEXT is the code between fences, below a line that names its source."
  (let* ((beg (car bounds)) (end (cdr bounds))
         (code (buffer-substring-no-properties beg end))
         (params (contexture--capture beg end :region))
         (fence (contexture-repl-code--fence code)))
    (when (string-blank-p code)
      (user-error "There is no text to ask about"))
    (cons (format "From %s:\n%s%s\n%s%s%s"
                  (contexture--description (plist-get params :metadata))
                  fence (contexture-repl-code--language) code
                  (if (string-suffix-p "\n" code) "" "\n") fence)
          (contexture-repl--make-origin
           :buffer (contexture--base-buffer)
           :beg (copy-marker beg) :end (copy-marker end t)
           :file (buffer-file-name (contexture--base-buffer)) :text code))))

(defun contexture-repl-code--fence (code)
  "Return a fence that is longer than any in CODE."
  (let ((longest 2) (start 0))
    (while (string-match "`+" code start)
      (setq longest (max longest (- (match-end 0) (match-beginning 0)))
            start (match-end 0)))
    (make-string (1+ longest) ?`)))

(defun contexture-repl-code--language ()
  "Return the name of this buffer's language for a fence."
  (let ((name (replace-regexp-in-string "\\(-ts\\)?-mode\\'" ""
                                        (symbol-name major-mode))))
    (pcase name
      ((or "fundamental" "text") "")
      ((or "emacs-lisp" "lisp-interaction") "elisp")
      ("c++" "cpp")
      (_ name))))

(defun contexture-repl-code--ask (template taken &rest fields)
  "Ask the question that TEMPLATE makes of TAKEN and FIELDS.
TAKEN is a value of `contexture-repl-code--take'."
  (let* ((buffer (contexture-repl-code--session))
         (language (contexture-repl-code--language))
         (fields (apply #'contexture--plist
                        :code (car taken)
                        :language (and (not (string-empty-p language)) language)
                        fields)))
    (with-current-buffer buffer
      (contexture-repl--wanting
       template
       (lambda ()
         (contexture-repl--request
          'resolve-template
          (append (contexture--plist
                   :name template
                   :project (plist-get contexture-repl--session :project))
                  (list :fields fields))
          (lambda (resolved)
            (contexture-repl-code--submit
             (string-trim (or (plist-get resolved :text) "")) (cdr taken)))))))
    (setq deactivate-mark t)
    (display-buffer buffer)))

(defun contexture-repl-code--session ()
  "Return the buffer of the session to ask in; signal an error if it is busy."
  (let ((buffer (save-window-excursion (contexture-repl) (current-buffer))))
    (with-current-buffer buffer (contexture-repl--check-idle))
    buffer))

(defun contexture-repl-code--submit (text origin)
  "Ask TEXT, with code from ORIGIN, in this session's buffer.
If something else was asked meanwhile, put TEXT at the prompt."
  (if (contexture-repl--busy-p)
      (contexture-repl--give-back text)
    (contexture-repl--ask text origin)))

;;;; Commands

;;;###autoload
(defun contexture-explain-code (&optional question)
  "Have a model explain the region or the definition around point.
With a prefix argument, ask QUESTION about it instead."
  (interactive
   (list (and current-prefix-arg (read-string "Question about this code: "))))
  (contexture-repl-code--ask
   "explain" (contexture-repl-code--take (contexture-repl-code--bounds))
   :question (and question (not (string-blank-p question)) question)))

;;;###autoload
(defun contexture-document-defun ()
  "Have a model document the region or the definition around point.
`contexture-repl-apply' in the session then proposes the change."
  (interactive)
  (contexture-repl-code--ask
   "document" (contexture-repl-code--take (contexture-repl-code--bounds))))

;;;###autoload
(defun contexture-review-code ()
  "Have a model review the region or the definition around point."
  (interactive)
  (contexture-repl-code--ask
   "review" (contexture-repl-code--take (contexture-repl-code--bounds))))

;;;###autoload
(defun contexture-write-tests ()
  "Have a model write tests for the region or the definition around point."
  (interactive)
  (contexture-repl-code--ask
   "write-tests" (contexture-repl-code--take (contexture-repl-code--bounds))))

;;;###autoload
(defun contexture-fix-error (error)
  "Have a model fix the region or the definition around point.
ERROR says what is wrong with the code.  Interactively, ERROR is Flymake's
diagnostic at point, or what you type.  In a compilation, the model fixes
the code that the error at point names."
  (interactive (list nil))
  (if (and (null error) (derived-mode-p 'compilation-mode))
      (contexture-repl-code--fix-compilation)
    (contexture-repl-code--ask
     "fix-error"
     (contexture-repl-code--take (contexture-repl-code--bounds))
     :error (or error (contexture-repl-code--error-here)))))

(defun contexture-repl-code--error-here ()
  "Return the error at point, from Flymake or else from the user."
  (let ((diagnostics (and (bound-and-true-p flymake-mode)
                          (contexture-sources--diagnostics nil))))
    (if diagnostics
        (string-trim-right
         (mapconcat #'contexture-sources--diagnostic-text diagnostics ""))
      (let ((text (read-string "What is wrong? ")))
        (if (string-blank-p text) (user-error "Say what is wrong")
          text)))))

(defun contexture-repl-code--fix-compilation ()
  "Have a model fix the error at point of this compilation."
  (let* ((position (or (contexture-sources--error-position)
                       (user-error "There is no error here")))
         (text (string-trim-right (contexture-sources--error-text position)))
         (place (contexture-sources--error-place position)))
    (unless (car place)
      (user-error "This error names no file that exists"))
    (with-current-buffer (find-file-noselect (car place))
      (save-excursion
        (save-restriction
          (widen)
          (contexture--line-position (or (cdr place) 1))
          (contexture-repl-code--ask
           "fix-error"
           (contexture-repl-code--take
            (or (contexture--defun-bounds)
                (cons (line-beginning-position -9) (line-beginning-position 11))))
           :error text))))))

;;;###autoload
(defun contexture-send-region (question)
  "Ask QUESTION about the region or the definition around point.
If QUESTION is empty, the text goes to the prompt of the session, where
you can write more."
  (interactive (list (read-string "Ask about this code: ")))
  (let ((taken (contexture-repl-code--take (contexture-repl-code--bounds))))
    (if (string-blank-p question)
        (let ((buffer (save-window-excursion (contexture-repl) (current-buffer))))
          (with-current-buffer buffer
            (contexture-repl--set-text
             (concat (contexture-repl--text) (car taken) "\n\n")))
          (pop-to-buffer buffer)
          (goto-char (point-max)))
      (contexture-repl-code--ask-plainly
       (concat (string-trim question) "\n\n" (car taken)) (cdr taken)))))

;;;; Rewriting

(defvar-local contexture-repl-code--waiting nil
  "Questions that this session asks when it is idle, each (TEXT . ORIGIN).")

;;;###autoload
(defun contexture-rewrite (instruction)
  "Have a model rewrite the region or the definition around point.
INSTRUCTION says how.  The change is shown at its place while it comes;
\\<contexture-review-map>there, \\[contexture-review-accept] accepts it and \\[contexture-review-reject] rejects it.  You can ask for
several changes, one after the other."
  (interactive (progn (contexture-review--check)
                      (contexture-repl-code--bounds)
                      (list (read-string "Rewrite this code how? "))))
  (when (string-blank-p instruction)
    (user-error "Say how to rewrite it"))
  (contexture-review--check)
  (let ((taken (contexture-repl-code--take (contexture-repl-code--bounds))))
    (contexture-repl-code--rewrite
     (save-window-excursion (contexture-repl) (current-buffer))
     (format "Rewrite the code below: %s\nChange nothing else, and answer with all of \
the rewritten code, and nothing but it, in one fenced block.\n\n%s"
             (contexture-repl-code--sentence instruction) (car taken))
     (cdr taken))))

;;;###autoload
(defalias 'contexture-rewrite-region #'contexture-rewrite)

(defun contexture-repl-code--rewrite (session text origin)
  "Ask TEXT in SESSION, a buffer, and propose the answer as a change of ORIGIN."
  (with-current-buffer (contexture-repl--origin-buffer origin)
    (let ((review (contexture-review--begin
                   (contexture-repl--origin-beg origin) (contexture-repl--origin-end origin)
                   :again (apply-partially #'contexture-repl-code--again session origin)
                   :cancel (apply-partially #'contexture-repl-code--stop session origin))))
      (setf (contexture-repl--origin-watch origin)
            (apply-partially #'contexture-repl-code--watch session origin review))))
  (setq deactivate-mark t)
  (with-current-buffer session
    (setq contexture-repl-code--waiting
          (append contexture-repl-code--waiting (list (cons text origin))))
    (add-hook 'contexture-repl-turn-ended-hook #'contexture-repl-code--next-soon nil t)
    (contexture-repl-code--next session)))

(defun contexture-repl-code--next-soon ()
  "Ask the next question of this session once its turn is over."
  (contexture--later (apply-partially #'contexture-repl-code--next (current-buffer))))

(defun contexture-repl-code--next (session)
  "Ask the next question that waits in SESSION, a buffer, unless it is busy."
  (when (buffer-live-p session)
    (with-current-buffer session
      (unless (contexture-repl--busy-p)
        (when-let* ((next (pop contexture-repl-code--waiting)))
          (contexture-repl--ask (car next) (cdr next)))))))

(defun contexture-repl-code--again (session origin remark)
  "Ask in SESSION for another change of ORIGIN, with REMARK."
  (unless (buffer-live-p session)
    (user-error "The conversation is closed; ask for a new change"))
  (let ((bounds (contexture-repl--locate origin)))
    (with-current-buffer (contexture-repl--origin-buffer origin)
      (contexture-review--drop-in (car bounds) (cdr bounds))
      (let ((taken (contexture-repl-code--take bounds)))
        (contexture-repl-code--rewrite
         session
         (format "Once more: %s\nAnswer with all of the rewritten code, and nothing but it, \
in one fenced block.\n\n%s"
                 (contexture-repl-code--sentence remark) (car taken))
         (cdr taken))))))

(defun contexture-repl-code--stop (session origin)
  "Stop asking in SESSION about ORIGIN."
  (when (buffer-live-p session)
    (with-current-buffer session
      (if (cl-find origin contexture-repl-code--waiting :key #'cdr)
          (setq contexture-repl-code--waiting
                (cl-remove origin contexture-repl-code--waiting :key #'cdr))
        (contexture-repl-cancel)))))

(defun contexture-repl-code--watch (session origin review answer state)
  "Show the code of ANSWER to a question in SESSION as REVIEW of ORIGIN.
STATE is `more', `done' or `failed'."
  (unless (contexture-review--ended-p review)
    (let ((code (contexture-repl-code--last-block answer)))
      (cond ((and code (eq state 'more))
             (contexture-review--show review code))
            ((eq state 'more))
            ((and code (eq state 'done))
             (contexture-review--show
              review (contexture-repl--fit code (contexture-repl--origin-text origin)) t))
            (t
             (contexture-review--end review)
             (display-buffer session)
             (contexture--message
              (if (eq state 'done) "The answer has no code; %s shows it"
                "The change did not come; %s says why")
              (buffer-name session)))))))

(defun contexture-repl-code--last-block (answer)
  "Return the last block of code in ANSWER, which may still be open, or nil."
  (with-temp-buffer
    (insert answer)
    (goto-char (point-min))
    (let (code)
      (while (re-search-forward "^ \\{0,3\\}\\(`\\{3,\\}\\|~\\{3,\\}\\).*\n" nil t)
        (let* ((start (point))
               (fence (match-string 1))
               (closed (re-search-forward
                        (format "^ \\{0,3\\}%s%c*[ \t]*$" fence (aref fence 0)) nil t)))
          (setq code (buffer-substring start (if closed (match-beginning 0) (point-max))))
          (unless closed (goto-char (point-max)))))
      code)))

(defun contexture-repl-code--sentence (text)
  "Return TEXT, trimmed, with a full stop unless it ends in punctuation."
  (let ((text (string-trim text)))
    (if (string-match-p "[.!?]\\'" text) text (concat text "."))))

(defun contexture-repl-code--ask-plainly (text origin)
  "Ask TEXT, with code from ORIGIN, in the session used last."
  (let ((buffer (contexture-repl-code--session)))
    (setq deactivate-mark t)
    (with-current-buffer buffer
      (contexture-repl--ask text origin))
    (display-buffer buffer)))

;;;###autoload
(defun contexture-insert-last-response (&optional code-only)
  "Insert the last answer of the session used last at point.
With CODE-ONLY, the prefix argument, insert only its last block of code."
  (interactive "*P")
  (unless (buffer-live-p contexture-repl--last-buffer)
    (user-error "No session is open; M-x contexture-repl opens one"))
  (let ((text (with-current-buffer contexture-repl--last-buffer
                (if code-only
                    (contexture-repl-markdown--block-text
                     (or (contexture-repl--last-block)
                         (user-error "No answer has a block of code")))
                  (contexture-repl--message-text
                   (or (cl-find-if
                        (lambda (it)
                          (and (eq (contexture-repl--message-role it) :assistant)
                               (contexture-repl--message-text it)))
                        contexture-repl--messages)
                       (user-error "There is no answer yet")))))))
    (push-mark)
    (insert text)))

(provide 'contexture-repl-code)
;;; contexture-repl-code.el ends here
