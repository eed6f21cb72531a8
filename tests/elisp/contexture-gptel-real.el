;;; contexture-gptel-real.el --- With gptel itself  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Loaded by contexture-gptel-tests.el into an Emacs of its own.  gptel
;; asks a model of the test.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-gptel)
(require 'gptel)
(require 'gptel-openai)

(defconst contexture-gptel-real-curl (and (executable-find "curl") t)
  "Whether gptel can use curl.
Without it, it cannot send text that is not ASCII.")

(defconst contexture-gptel-real-text
  (if contexture-gptel-real-curl "(marked λ)" "(marked l)")
  "A text to mark.")

(defmacro contexture-gptel-real-with-model (&rest body)
  "Run BODY with gptel asking a model of this test, which always says \"Because.\"."
  (declare (indent 0) (debug t))
  `(llm-ert-with-model (lambda (_) "Because.")
     (let ((gptel-use-curl contexture-gptel-real-curl)
           (gptel-stream nil)
           (gptel-model 'played)
           (gptel-backend
            (gptel-make-openai "played" :protocol "http" :models '(played) :key "none"
                               :host (llm-ert-host))))
       (contexture-test-with-server
         (unwind-protect (progn ,@body)
           (contexture-gptel-mode -1))))))

(defun contexture-gptel-real-ask (text)
  "Send TEXT with gptel from this buffer; return what the model was asked.
That is an alist of roles and texts."
  (goto-char (point-max))
  (insert text)
  (let ((before (how-many "Because\\." (point-min) (point-max)))
        (asked (length (llm-ert-shown)))
        (answered (make-symbol "answered")))
    (set answered nil)
    (let ((note (lambda (&rest _) (set answered t))))
      (add-hook 'gptel-post-response-functions note nil t)
      (gptel-send)
      (llm-ert-wait-for (symbol-value answered))
      (remove-hook 'gptel-post-response-functions note t))
    (should (= (1+ before) (how-many "Because\\." (point-min) (point-max))))
    (should (= (1+ asked) (length (llm-ert-shown)))))
  (mapcar (lambda (message)
            (cons (plist-get message :role) (plist-get message :content)))
          (plist-get (plist-get (car (last (llm-ert-shown))) :body) :messages)))

(defun contexture-gptel-real-times (text messages)
  "Return how often TEXT is in MESSAGES."
  (let ((all (mapconcat #'cdr messages "\n")) (start 0) (times 0))
    (while (setq start (string-search text all start))
      (cl-incf start)
      (cl-incf times))
    times))

(defun contexture-gptel-real-mark ()
  "Add a text to the context of this buffer."
  (contexture-request 'add-context
                      (list :manager (contexture-adding-context)
                            :content contexture-gptel-real-text :type :code)))

(ert-deftest contexture-gptel-real-follows-no-link-of-the-context ()
  (require 'org)
  (require 'gptel-org)
  (llm-ert-with-files '(("secret.txt" . "the key") ("own.txt" . "own text"))
    (let* ((gptel-model 'played)
           (gptel-backend (gptel-make-openai "played" :models '(played) :key "none"))
           (gptel-track-media t)
           (gptel-use-context 'user)
           (link (lambda (name) (format "[[file:%s]]" (expand-file-name name)))))
      (with-temp-buffer
        (org-mode)
        (insert "Why? " (funcall link "own.txt"))
        (contexture-gptel--insert (concat "See\n" (funcall link "secret.txt") "\n"))
        (goto-char (point-max))
        (let ((sent (format "%S" (gptel--parse-buffer gptel-backend nil))))
          (should (string-search "own text" sent))
          (should (string-search "secret.txt" sent))
          (should-not (string-search "the key" sent)))))))

(ert-deftest contexture-gptel-real-system-message-has-the-context-once ()
  (contexture-gptel-real-with-model
    (with-temp-buffer
      (contexture-gptel-real-mark)
      (contexture-gptel-mode 1)
      (let ((messages (contexture-gptel-real-ask "Why?")))
        (should (equal (mapcar #'car messages) '("system" "user")))
        (should (string-search contexture-gptel-real-text (cdar messages)))
        (should (= 1 (contexture-gptel-real-times "## Context" messages)))
        (should (equal (cdadr messages) "Why?")))
      (should-not (string-search "marked" (buffer-string))))))

(ert-deftest contexture-gptel-real-prompt-has-the-context-once-in-a-chat ()
  (contexture-gptel-real-with-model
    (with-temp-buffer
      (text-mode)
      (gptel-mode 1)
      (setq-local gptel-use-context 'user)
      (contexture-gptel-real-mark)
      (contexture-gptel-mode 1)
      (insert (gptel-prompt-prefix-string))
      (should (= 1 (contexture-gptel-real-times
                    contexture-gptel-real-text (contexture-gptel-real-ask "Why?"))))
      (let ((messages (contexture-gptel-real-ask "And then?")))
        (should (equal (mapcar #'car messages) '("system" "user" "assistant" "user")))
        (should (= 1 (contexture-gptel-real-times contexture-gptel-real-text
                                                   messages)))
        (should (string-match-p "\\`## Context\n\\(?:.\\|\n\\)*```\n\nAnd then\\?\\'"
                                (cdr (nth 3 messages))))))))

(ert-deftest contexture-gptel-real-menu-and-header-show-the-context ()
  ;; Loading a transient for which this Emacs is too old breaks gptel.
  (skip-unless (and (>= emacs-major-version 29)
                    (ignore-errors (require 'gptel-transient))))
  (contexture-gptel-real-with-model
    (with-temp-buffer
      (text-mode)
      (gptel-mode 1)
      (let ((header (length header-line-format)))
        (contexture-gptel-mode 1)
        (contexture-mode 1)
        (contexture-gptel-real-mark)
        (contexture-test-settle)
        (should (string-match-p "1 item, [0-9]+ tokens?\\'" (contexture-gptel--describe)))
        (should (equal (nth 2 header-line-format) contexture-gptel--header))
        (should (transient-get-suffix 'gptel-menu "-x"))
        (insert (gptel-prompt-prefix-string))
        (contexture-gptel-real-ask "Why?")
        (should (string-match-p ", sent [0-9]+:[0-9]+" (contexture-gptel--describe)))
        (should (string-search "Ready" (nth 1 header-line-format)))
        (contexture-gptel-mode -1)
        (should (= header (length header-line-format)))
        (should-error (transient-get-suffix 'gptel-menu "-x"))))))

(ert-deftest contexture-gptel-real-mode-off-sends-nothing ()
  (contexture-gptel-real-with-model
    (let ((before (copy-sequence gptel-prompt-transform-functions)))
      (with-temp-buffer
        (contexture-gptel-real-mark)
        (contexture-gptel-mode 1)
        (contexture-gptel-mode -1)
        (should (equal gptel-prompt-transform-functions before))
        (should (= 0 (contexture-gptel-real-times
                      "marked" (contexture-gptel-real-ask "Why?"))))))))

(ert-deftest contexture-gptel-real-a-stopped-server-does-not-hold-it-up ()
  (contexture-gptel-real-with-model
    (with-temp-buffer
      (contexture-gptel-real-mark)
      (contexture-gptel-mode 1)
      (let ((contexture-gptel-timeout 0.2))
        (contexture-ert-stop-server)
        (should (= 0 (contexture-gptel-real-times
                      "marked" (contexture-gptel-real-ask "Why?"))))
        (contexture-ert-continue-server)))))

(provide 'contexture-gptel-real)
;;; contexture-gptel-real.el ends here
