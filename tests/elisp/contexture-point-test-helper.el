;;; contexture-point-test-helper.el --- What is meant at point, to be tested  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A repository and a model, and a check of one kind of buffer with all four
;; commands: what is added, asked about, and fixed.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-point)
(require 'contexture-sources)
(require 'contexture-conversation)

(defconst contexture-point-test-code
  '(";; top" "(defun one ()" "  1)" "" "(defun two ()" "  (one)" "  2)" "" "(defun three ()" "  3)")
  "Lines of the file a.el.")

(defun contexture-point-test-in-repository (function)
  "Call FUNCTION in a repository with two commits and a change of a.el.
A model answers all questions."
  (unless (executable-find "git") (ert-skip "Git is not there"))
  (contexture-conversation-test--with-model (make-list 200 '("- 1: this is odd"))
    (lambda ()
      (let ((default-directory llm-ert-directory)
            (contexture-remark--all nil)
            (vc-handled-backends '(Git)))
        (apply #'contexture-test-file "a.el" (remove "  (one)" contexture-point-test-code))
        (contexture-test-git "init" "-q")
        (contexture-test-git "add" ".")
        (contexture-test-git "commit" "-q" "-m" "Begin")
        (apply #'contexture-test-file "a.el" contexture-point-test-code)
        (contexture-test-git "commit" "-q" "-a" "-m" "Call one")
        (apply #'contexture-test-file "a.el"
               (cons ";; above" (append contexture-point-test-code '(";; end"))))
        (save-window-excursion (funcall function))))))

(defmacro contexture-point-test-with (&rest body)
  "Run BODY in a repository; see `contexture-point-test-in-repository'."
  (declare (debug t))
  `(contexture-point-test-in-repository (lambda () ,@body)))

(defun contexture-point-test-subjects ()
  "Return the subjects at point once they have their texts."
  (let ((found 'none))
    (contexture-point-with (contexture-point-subjects) (lambda (it) (setq found it)))
    (llm-ert-wait-for (not (eq found 'none)))
    found))

(defun contexture-point-test-texts ()
  "Return the texts of the subjects at point."
  (mapcar (lambda (it) (plist-get (plist-get it :params) :content))
          (contexture-point-test-subjects)))

(defun contexture-point-test-added ()
  "Return the items that `contexture-add-dwim' adds here."
  (contexture-request 'clear-context (list :manager (contexture-current-context)))
  (contexture-test-settle)
  (let ((context (contexture-current-context)))
    (contexture-add-dwim)
    (llm-ert-wait-for (contexture-test-items context))
    (contexture-test-settle)
    (prog1 (contexture-test-items context)
      (contexture-request 'clear-context (list :manager context)))))

(defun contexture-point-test-asked (command)
  "Return (SHOWN . SENT) of the question that COMMAND asks here."
  (let ((before (length (llm-ert-shown)))
        (place (point)))
    (save-window-excursion (save-current-buffer (funcall command)))
    (goto-char place)
    (llm-ert-wait-for (< before (length (llm-ert-shown))))
    (with-current-buffer (car contexture-conversation--recent)
      (contexture-conversation-test-wait)
      (cons (contexture-conversation--message-text (contexture-conversation--last :user))
            (contexture-conversation-test-last-shown)))))

(defun contexture-point-test-check (source &rest regexps)
  "Check what is added here, shown, sent and fixed.
SOURCE is a regexp for what the text is called, or (SOURCE . FIXED), with a
regexp for the code that is fixed; else none is.  Each of REGEXPS matches one
text, in their order."
  (pcase-let* ((`(,source . ,fixed) (ensure-list (if (stringp source) (list source) source)))
               (buffer (current-buffer))
               (items (contexture-point-test-added))
               (texts (mapcar (lambda (it) (plist-get it :content)) items)))
    (should (= (length texts) (length regexps)))
    (cl-loop for text in texts for regexp in regexps
             do (should (string-match-p regexp text)))
    (should (cl-some (lambda (item)
                       (string-match-p source (contexture--description
                                               (plist-get item :metadata))))
                     items))
    (set-buffer buffer)
    (dolist (command (list #'contexture-explain-code #'contexture-review-code))
      (pcase-let ((`(,shown . ,sent) (contexture-point-test-asked command)))
        (should (string-prefix-p (if (eq command #'contexture-explain-code) "Explain" "Review")
                                 shown))
        (dolist (text texts)
          ;; In a review, lines have numbers.
          (dolist (line (split-string (string-trim text) "\n"))
            (dolist (said (list shown sent))
              (should (string-search line said)))))))
    (should (eq (current-buffer) buffer))
    (mapc #'delete-overlay contexture-remark--all)
    (setq contexture-remark--all nil)
    (if fixed
        (pcase-let ((`(,shown . ,sent) (contexture-point-test-asked
                                        (lambda () (contexture-fix-error "It breaks")))))
          (dolist (said (list shown sent))
            (should (string-search "It breaks" said))
            (should (string-match-p fixed said))))
      (contexture-test-user-error "names no existing file\\|Mark a region"
        (contexture-fix-error "It breaks")))
    (set-buffer buffer)))

(provide 'contexture-point-test-helper)
;;; contexture-point-test-helper.el ends here
