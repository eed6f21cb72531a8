;;; contexture-point-tests.el --- Tests of what is meant at point  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A table of buffers: what each shows, where point is, and which texts are
;; then added and asked about.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-point)
(require 'contexture-sources)
(require 'contexture-conversation)
(require 'diff-mode)
(require 'dired)
(require 'eshell)
(require 'em-banner)
(require 'em-dirs)
(require 'em-hist)
(require 'eww)
(require 'flymake)
(require 'grep)
(require 'info)
(require 'log-view)
(require 'man)
(require 'org)
(require 'shell)
(require 'smerge-mode)
(require 'term)
(require 'vc)
(require 'vc-annotate)
(require 'vc-git)
(require 'xref)

(defconst contexture-point-tests--code
  '(";; top" "(defun one ()" "  1)" "" "(defun two ()" "  (one)" "  2)" "" "(defun three ()" "  3)")
  "Lines of the file a.el.")

(defun contexture-point-tests--in-repository (function)
  "Call FUNCTION in a repository with two commits and a change of a.el."
  (unless (executable-find "git") (ert-skip "Git is not there"))
  (contexture-test-with-server
    (let ((default-directory llm-ert-directory)
          (vc-handled-backends '(Git)))
      (apply #'contexture-test-file "a.el" (remove "  (one)" contexture-point-tests--code))
      (contexture-test-git "init" "-q")
      (contexture-test-git "add" ".")
      (contexture-test-git "commit" "-q" "-m" "Begin")
      (apply #'contexture-test-file "a.el" contexture-point-tests--code)
      (contexture-test-git "commit" "-q" "-a" "-m" "Call one")
      (apply #'contexture-test-file "a.el"
             (cons ";; above" (append contexture-point-tests--code '(";; end"))))
      (save-window-excursion (funcall function)))))

(defmacro contexture-point-tests--with (&rest body)
  "Run BODY in a repository; see `contexture-point-tests--in-repository'."
  (declare (debug t))
  `(contexture-point-tests--in-repository (lambda () ,@body)))

(defun contexture-point-tests--subjects ()
  "Return the subjects at point once they have their texts."
  (let ((found 'none))
    (contexture-point-with (contexture-point-subjects) (lambda (it) (setq found it)))
    (llm-ert-wait-for (not (eq found 'none)))
    found))

(defun contexture-point-tests--texts ()
  "Return the texts of the subjects at point."
  (mapcar (lambda (it) (plist-get (plist-get it :params) :content))
          (contexture-point-tests--subjects)))

(defun contexture-point-tests--check (source &rest regexps)
  "Check what is meant at point, what is added, and where its code is.
SOURCE is a regexp for what the text is called; each of REGEXPS matches the text
of one subject, in their order."
  (let* ((texts (contexture-point-tests--texts))
         (buffer (current-buffer))
         (before (length (contexture-test-items (contexture-current-context)))))
    (should (= (length texts) (length regexps)))
    (cl-loop for text in texts for regexp in regexps
             do (should (string-match-p regexp text)))
    (contexture-add-dwim)
    (llm-ert-wait-for
      (< before (length (contexture-test-items (contexture-current-context)))))
    (let ((items (contexture-test-items (contexture-current-context))))
      (dolist (text texts)
        (should (cl-find text items :key (lambda (it) (plist-get it :content)) :test #'equal)))
      (should (cl-some (lambda (item)
                         (string-match-p source (contexture--description
                                                 (plist-get item :metadata))))
                       items)))
    (set-buffer buffer)))

(defun contexture-point-tests--process-buffer (name)
  "Return the buffer NAME once its process has ended."
  (llm-ert-wait-for
    (let ((process (get-buffer-process name))) (not (process-live-p process))))
  (get-buffer name))

;;;; Differences

(ert-deftest contexture-point-hunk-and-file-of-a-diff ()
  (contexture-point-tests--with
   (with-temp-buffer
     (setq default-directory llm-ert-directory)
     (call-process "git" nil t nil "diff" "-U1" "HEAD~1")
     (diff-mode)
     (goto-char (point-min))
     (search-forward "+;; end")
     (contexture-point-tests--check "the diff of a\\.el:[0-9]+-" "\\`@@ [^@]*@@.*\n\\(?: .*\n\\)*\\+;; end")
     (goto-char (point-min))
     (contexture-point-tests--check "the diff of a\\.el" "\\`diff --git\\(?:.*\n\\)*.*;; above\\(?:.*\n\\)*.*;; end")
     (goto-char (point-min))
     (search-forward "+  (one)")
     (pcase-let ((`(,buffer ,beg ,end)
                  (contexture-point-code (car (contexture-point-subjects)))))
       (should (string-prefix-p "(defun two ()" (with-current-buffer buffer
                                                  (buffer-substring beg end))))))))

(ert-deftest contexture-point-hostile-names-in-a-diff-are-no-files ()
  (contexture-point-tests--with
   (with-temp-buffer
     (setq default-directory llm-ert-directory)
     (insert "--- a/ssh:x:/b\n+++ b/../../../ssh:x:/b\n@@ -1,1 +1,1 @@\n-a\n+b\n")
     (diff-mode)
     (goto-char (point-min))
     (search-forward "+b\n")
     (forward-line -1)
     (let ((subject (car (contexture-point-subjects))))
       (should (string-match-p "\\`@@" (plist-get (plist-get subject :params) :content)))
       (should-not (plist-get subject :place))))))

(ert-deftest contexture-point-vc-diff ()
  (contexture-point-tests--with
   (contexture-test-visiting (expand-file-name "a.el")
     (vc-diff nil t)
     (with-current-buffer (contexture-point-tests--process-buffer "*vc-diff*")
       (goto-char (point-min))
       (search-forward "+;; above")
       (contexture-point-tests--check "the diff of a\\.el" "\\+;; above")))))

(ert-deftest contexture-point-conflict ()
  (contexture-point-tests--with
   (let ((file (contexture-test-file
                "c.el" "(defun a ()" "<<<<<<< ours" "  1)" "=======" "  2)" ">>>>>>> theirs" ";; e")))
     (contexture-test-visiting file
       (smerge-mode 1)
       (goto-char (point-min))
       (search-forward "  2)")
       (contexture-point-tests--check "c\\.el:2-6" "\\`<<<<<<< ours\n  1)\n=======\n  2)\n>>>>>>> theirs\n\\'")
       (goto-char (point-max))
       (should-not (contexture-point-subjects))))))

;;;; Commits

(ert-deftest contexture-point-commits-of-a-log ()
  (contexture-point-tests--with
   (let ((file (expand-file-name "a.el")))
     (contexture-test-visiting file
       (vc-print-log-internal 'Git (list file) nil nil nil)
       (with-current-buffer (contexture-point-tests--process-buffer "*vc-change-log*")
         (llm-ert-wait-for (string-match-p "Begin" (buffer-string)))
         (goto-char (point-min))
         (search-forward "Call one")
         (contexture-point-tests--check "the diff of commit [0-9a-f]\\{10\\} (Call one)"
                                        "\\`commit \\(?:.*\n\\)*\\+  (one)")
         (let ((transient-mark-mode t))
           (push-mark (point-min) t t)
           (goto-char (point-max))
           (contexture-point-tests--check "(Begin)" "Call one" "Begin")))))))

(ert-deftest contexture-point-revisions-from-outside-are-no-options ()
  (contexture-point-tests--with
   (dolist (revision '("--output=x" "-p" "a b" "HEAD:x" "a\nb" "" nil 7))
     (should-not (contexture-point--commit revision)))
   (should (contexture-point--commit "HEAD~1"))))

(ert-deftest contexture-point-annotated-line ()
  (contexture-point-tests--with
   (contexture-test-visiting (expand-file-name "a.el")
     (vc-annotate (buffer-file-name) "HEAD" nil nil 2 'Git)
     (with-current-buffer (contexture-point-tests--process-buffer
                           (cl-find-if (lambda (it) (string-prefix-p "*Annotate a.el" (buffer-name it)))
                                       (buffer-list)))
       (goto-char (point-min))
       (search-forward "(one)")
       (contexture-point-tests--check "(Call one)" "\\+  (one)")))))

;;;; Lists of places

(ert-deftest contexture-point-places-of-lists ()
  (contexture-point-tests--with
   (contexture-test-visiting (expand-file-name "a.el")
     (emacs-lisp-mode)
     (let ((code (current-buffer)) (transient-mark-mode t))
       ;; occur
       (occur "(one)\\|  3")
       (with-current-buffer "*Occur*"
         (goto-char (point-min))
         (search-forward "  (one)")
         (contexture-point-tests--check "a\\.el:6-8" "\\`(defun two ()")
         (push-mark (point-min) t t)
         (goto-char (point-max))
         (contexture-point-tests--check "a\\.el" "(defun two" "(defun three")
         (deactivate-mark))
       ;; xref
       (with-current-buffer code
         (let ((items (list (xref-make "  (one)" (xref-make-file-location (buffer-file-name) 7 0)))))
           (xref--show-xref-buffer (lambda () items) (list (cons 'window nil)))))
       (with-current-buffer "*xref*"
         (goto-char (point-min))
         (search-forward "(one)")
         (contexture-point-tests--check "a\\.el:6-8" "\\`(defun two ()"))
       ;; grep
       (with-temp-buffer
         (setq default-directory llm-ert-directory)
         (insert "-*- mode: grep -*-\n\na.el:7:  (one)\na.el:11:  3)\n")
         (grep-mode)
         (goto-char (point-min))
         (search-forward "(one)")
         (contexture-point-tests--check "a\\.el:6-8" "\\`(defun two ()")
         (push-mark (point-min) t t)
         (goto-char (point-max))
         (contexture-point-tests--check "a\\.el" "(defun two" "(defun three")
         (deactivate-mark))
       ;; compile
       (with-temp-buffer
         (setq default-directory llm-ert-directory)
         (insert "make\na.el:7:3: error: one is not there\n")
         (compilation-mode)
         (goto-char (point-min))
         (search-forward "error")
         (contexture-point-tests--check "the error at a\\.el" "one is not there" "\\`(defun two ()"))
       ;; Flymake
       (with-current-buffer code
         (setq-local flymake-diagnostic-functions
                     (list (lambda (report &rest _)
                             (goto-char (point-min))
                             (search-forward "(one)")
                             (funcall report (list (flymake-make-diagnostic
                                                    code (match-beginning 0) (match-end 0)
                                                    :error "one is odd"))))))
         (flymake-mode 1)
         (flymake-start)
         (llm-ert-wait-for (flymake-diagnostics))
         (flymake-show-buffer-diagnostics)
         (with-current-buffer (flymake--diagnostics-buffer-name)
           (llm-ert-wait-for (progn (revert-buffer) (tabulated-list-get-id)))
           (contexture-point-tests--check "the diagnostics of a\\.el:7" "one is odd" "\\`(defun two ()")
           (kill-buffer))
         (flymake-mode -1))))))

(ert-deftest contexture-point-files-of-dired ()
  (contexture-point-tests--with
   (with-current-buffer (dired-noselect default-directory)
     (dired-goto-file (expand-file-name "a.el"))
     (should (equal (contexture-point-tests--texts)
                    (list (mapconcat #'identity
                                     `(";; above" ,@contexture-point-tests--code ";; end" "") "\n"))))
     (kill-buffer))))

;;;; Pages, tables and terminals

(ert-deftest contexture-point-table-of-org ()
  (contexture-point-tests--with
   (contexture-test-visiting (contexture-test-file "n.org" "* A" "| x | y |" "| 1 | 2 |" "" "text")
     (goto-char (point-min))
     (search-forward "1 |")
     (contexture-point-tests--check "n\\.org:2-3" "\\`| x | y |\n| 1 | 2 |\n\\'")
     (goto-char (point-max))
     (should-not (contexture-point-subjects)))))

(ert-deftest contexture-point-pages-have-their-names ()
  (contexture-point-tests--with
   (let ((help-window-select nil))
     (describe-function 'car)
     (with-current-buffer "*Help*"
       (contexture-point-tests--check "\\`Help on car\\'" "car"))
     (with-temp-buffer
       (insert "File: x\n\nSome text\n")
       (Info-mode)
       (setq Info-current-file "/usr/share/info/emacs" Info-current-node "Buffers")
       (contexture-point-tests--check "\\`(emacs)Buffers\\'" "Some text"))
     (with-temp-buffer
       (insert "LS(1)\n")
       (Man-mode)
       (setq-local Man-arguments "ls")
       (contexture-point-tests--check "\\`man ls\\'" "LS(1)"))
     (with-temp-buffer
       (insert "A page\n")
       (let ((inhibit-read-only t)) (eww-mode))
       (setq eww-data (list :title "Title" :url "http://127.0.0.1/x"))
       (contexture-point-tests--check "\\`Title <http://127.0.0.1/x>\\'" "A page")))))

(ert-deftest contexture-point-last-command-of-a-terminal ()
  (contexture-point-tests--with
   (let ((explicit-shell-file-name "/bin/sh")
         (process-environment (append '("PS1=there$ " "ENV=") process-environment)))
     (with-current-buffer (shell "*contexture-point shell*")
       (llm-ert-wait-for (string-match-p "there\\$ \\'" (buffer-string)))
       (pcase-dolist (`(,command . ,output) '(("echo first" . "first")
                                              ("echo second; echo last" . "second\nlast")))
         (goto-char (point-max))
         (insert command)
         (comint-send-input)
         (llm-ert-wait-for
           (string-match-p (concat output "\nthere\\$ \\'") (buffer-string))))
       (contexture-point-tests--check "contexture-point shell"
                                      "\\`.*echo second; echo last\nsecond\nlast\n\\'")
       (set-process-query-on-exit-flag (get-buffer-process (current-buffer)) nil)
       (kill-buffer)))
   (let ((eshell-buffer-name "*contexture-point eshell*")
         (eshell-banner-message "")
         (eshell-history-file-name nil))
     (with-current-buffer (eshell)
       (dolist (command '("echo first" "echo second"))
         (goto-char (point-max))
         (insert command)
         (eshell-send-input))
       (contexture-point-tests--check "contexture-point eshell" "\\`.*echo second\nsecond\n\\'")
       (kill-buffer)))
   (with-temp-buffer
     (insert "u@h:~$ echo a\na\nu@h:~$ make all\ncc x\ndone\nu@h:~$ ")
     (setq major-mode 'term-mode)
     (contexture-point-tests--check "" "\\`u@h:~\\$ make all\ncc x\ndone\n\\'"))))

;;;; Questions

(ert-deftest contexture-point-questions-about-what-is-meant ()
  (contexture-point-tests--with
   (with-temp-buffer
     (setq default-directory llm-ert-directory)
     (call-process "git" nil t nil "diff" "-U0")
     (diff-mode)
     (goto-char (point-min))
     (search-forward "+;; end")
     (let ((hunk (car (contexture-point-tests--texts))) asked)
       (cl-letf (((symbol-function 'contexture-conversation-code--ask)
                  (lambda (template about session &rest fields)
                    (push (list template
                                (car (contexture-conversation-code--take
                                      about (contexture-conversation--buffer session)
                                      (equal template "review")))
                                fields)
                          asked))))
         (contexture-explain-code "Why?")
         (contexture-review-code)
         (contexture-fix-error "It breaks"))
       (pcase-let ((`((,fix ,code (:error ,problem)) (,review ,reviewed) (,explain ,explained . ,_))
                    asked))
         (should (equal (list fix review explain problem)
                        '("fix-error" "review" "explain" "It breaks")))
         (dolist (text (list reviewed explained))
           (should (string-match-p "\\`From the diff of a\\.el:[0-9-]+:\n```diff\n" text))
           (should (string-search (if (eq text reviewed) "\n   12 +;; end" hunk) text)))
         (should (string-match-p "\\`From a\\.el:[0-9-]+:\n```elisp\n" code)))))))

;;;; Remarks

(ert-deftest contexture-remark-reads-what-models-write ()
  (pcase-dolist (`(,answer . ,remarks)
                 '(("12: odd" (nil 12 "odd"))
                   ("- **12**: odd\n\nMore." (nil 12 "odd"))
                   ("1. `src/a.c:12`: odd\n   and long" ("src/a.c" 12 "odd and long"))
                   ("* Line 12: odd\n* L13-15: worse" (nil 12 "odd") (nil 13 "worse"))
                   ("**a.el:7:** odd" ("a.el" 7 "odd"))
                   ("At 12:30 it broke: see http://h:80/x.\nNothing to say.")))
    (should (equal (contexture-remark--read answer) remarks))))

(ert-deftest contexture-remark-is-shown-at-its-line ()
  (contexture-point-tests--with
   (contexture-test-visiting (expand-file-name "a.el")
     (let ((contexture-remark--all nil)
           (code (current-buffer))
           (subject (list :place (cons (buffer-file-name) 7)
                          :params (contexture-sources--params
                                   :text :diff "@@ -1,1 +7,2 @@\n (defun two ()\n+  (one)\n" '(:language "diff")))))
       (should (equal (contexture-point-numbered (plist-get subject :params))
                      "@@ -1,1 +7,2 @@\n    7  (defun two ()\n    8 +  (one)"))
       (contexture-test-message "^2 remarks at their lines"
         (contexture-remark--watch
          (contexture-remark--places (list subject))
          "Two things.\n\na.el:8: calls\u202e one\n/etc/passwd:1: no\na.el:99: no\n4: a gap" 'done))
       (should (equal (mapcar (lambda (it) (with-current-buffer (overlay-buffer it)
                                             (line-number-at-pos (overlay-start it))))
                              contexture-remark--all)
                      '(8 4)))
       (should-not (string-search "\u202e" (overlay-get (car contexture-remark--all) 'after-string)))
       (goto-char (point-min))
       (contexture-remark-next)
       (should (equal (line-number-at-pos) 4))
       (contexture-remark-dismiss)
       (contexture-test-user-error "No remark" (contexture-remark-dismiss))
       (contexture-remark-next)
       (should (equal (line-number-at-pos) 8))
       (should (eq (key-binding (kbd "C-c C-c")) #'contexture-remark-apply))
       (let (asked)
         (cl-letf (((symbol-function 'contexture-rewrite) (lambda (it) (setq asked it))))
           (contexture-remark-apply))
         (should (string-prefix-p "A review says of line 8: calls" asked)))
       (should-not contexture-remark--all)
       (should (eq code (current-buffer)))))))

(provide 'contexture-point-tests)
;;; contexture-point-tests.el ends here
