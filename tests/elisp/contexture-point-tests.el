;;; contexture-point-tests.el --- Tests of what is meant at point  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A table of buffers: what each shows, where point is, which texts are then added
;; and asked about, and which code is fixed.  Each is tried with all four commands,
;; up to what the model is sent.

;;; Code:

(require 'contexture-point-test-helper)
(require 'diff-mode)
(require 'calendar)
(require 'cus-edit)
(require 'diary-lib)
(require 'dired)
(require 'ediff)
(require 'wdired)
(require 'holidays)
(require 'ibuffer)
(require 'ibuf-ext)
(require 'proced)
(require 'tar-mode)
(require 'vc-dir)
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

(defun contexture-point-tests--process-buffer (name)
  "Return the buffer NAME once its process has ended and Emacs knows it.
A dead process may have unread output, and a sentinel that moves point.
Emacs forgets the process when it calls the sentinel."
  (llm-ert-wait-for (not (get-buffer-process name)))
  (get-buffer name))

;;;; Differences

(ert-deftest contexture-point-hunk-and-file-of-a-diff ()
  (contexture-point-test-with
   (with-temp-buffer
     (setq default-directory llm-ert-directory)
     (call-process "git" nil t nil "diff" "-U1" "HEAD~1")
     (diff-mode)
     (goto-char (point-min))
     (search-forward "+;; end")
     (contexture-point-test-check '("the diff of a\\.el:[0-9]+-" . "(defun three") "\\`@@ [^@]*@@.*\n\\(?: .*\n\\)*\\+;; end")
     (goto-char (point-min))
     (contexture-point-test-check '("the diff of a\\.el" . ";; above") "\\`diff --git\\(?:.*\n\\)*.*;; above\\(?:.*\n\\)*.*;; end")
     (goto-char (point-min))
     (search-forward "+  (one)")
     (pcase-let ((`(,buffer ,beg ,end)
                  (contexture-point-code (car (contexture-point-subjects)))))
       (should (string-prefix-p "(defun two ()" (with-current-buffer buffer
                                                  (buffer-substring beg end))))))))

(ert-deftest contexture-point-hostile-names-in-a-diff-are-no-files ()
  (contexture-point-test-with
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
  (contexture-point-test-with
   (contexture-test-visiting (expand-file-name "a.el")
     (vc-diff nil t)
     (with-current-buffer (contexture-point-tests--process-buffer "*vc-diff*")
       (goto-char (point-min))
       (search-forward "+;; above")
       (contexture-point-test-check '("the diff of a\\.el" . ";; above") "\\+;; above")))))

(ert-deftest contexture-point-conflict ()
  (contexture-point-test-with
   (let ((file (contexture-test-file
                "c.el" "(defun a ()" "<<<<<<< ours" "  1)" "=======" "  2)" ">>>>>>> theirs" ";; e")))
     (contexture-test-visiting file
       (smerge-mode 1)
       (goto-char (point-min))
       (search-forward "  2)")
       (contexture-point-test-check '("c\\.el:2-6" . "<<<<<<< ours\n  1)") "\\`<<<<<<< ours\n  1)\n=======\n  2)\n>>>>>>> theirs\n\\'")
       (goto-char (point-max))
       (should-not (contexture-point-subjects))))))

(ert-deftest contexture-point-difference-of-ediff ()
  (contexture-point-test-with
   (let ((old (contexture-test-file "old.el" "(defun one ()" "  1)" "" "(defun two ()" "  2)"))
         (new (contexture-test-file "new.el" "(defun one ()" "  1)" "" "(defun two ()" "  (one)" "  3)"))
         (ediff-window-setup-function #'ediff-setup-windows-plain)
         control)
     (skip-unless (executable-find "diff"))
     (ediff-files old new (list (lambda () (setq control (current-buffer)))))
     (with-current-buffer control
       (ediff-next-difference)
       (contexture-point-test-check '("the diff of new\\.el" . "(defun two ()\n  (one)\n  3)")
                                      "\\`@@ -5,1 \\+5,2 @@\n-  2)\n\\+  (one)\n\\+  3)\n\\'")
       (cl-letf (((symbol-function 'y-or-n-p) #'always)) (ediff-really-quit nil))))))

;;;; Commits

(ert-deftest contexture-point-commits-of-a-rebase ()
  (contexture-point-test-with
   (contexture-test-visiting
       (contexture-test-file ".git/rebase-merge/git-rebase-todo"
                             (concat "pick " (substring (shell-command-to-string
                                                         "git rev-parse HEAD~1")
                                                        0 7)
                                     " Begin")
                             (concat "# fixup -C " (substring (shell-command-to-string
                                                              "git rev-parse HEAD")
                                                             0 7)
                                     " Call one")
                             "" "# Commands:" "# p, pick <commit> = use commit")
     (goto-char (point-min))
     (contexture-point-test-check "(Begin)" "\\+(defun one")
     (forward-line)
     (contexture-point-test-check "(Call one)" "\\+  (one)")
     (let ((transient-mark-mode t))
       (push-mark (point-min) t t)
       (goto-char (point-max))
       (contexture-point-test-check "(Begin)" "\\+(defun one" "\\+  (one)"))
     (deactivate-mark)
     (should-not (contexture-point-subjects)))))

(ert-deftest contexture-point-commits-of-a-log ()
  (contexture-point-test-with
   (let ((file (expand-file-name "a.el")))
     (contexture-test-visiting file
       (vc-print-log-internal 'Git (list file) nil nil nil)
       (with-current-buffer (contexture-point-tests--process-buffer "*vc-change-log*")
         (llm-ert-wait-for (string-match-p "Begin" (buffer-string)))
         (goto-char (point-min))
         (search-forward "Call one")
         (contexture-point-test-check "the diff of commit [0-9a-f]\\{10\\} (Call one)"
                                        "\\`commit \\(?:.*\n\\)*\\+  (one)")
         (let ((transient-mark-mode t))
           (push-mark (point-min) t t)
           (goto-char (point-max))
           (contexture-point-test-check "(Begin)" "Call one" "Begin")))))))

(ert-deftest contexture-point-revisions-from-outside-are-no-options ()
  (contexture-point-test-with
   (dolist (revision '("--output=x" "-p" "a b" "HEAD:x" "a\nb" "" nil 7))
     (should-not (contexture-point--commit revision)))
   (should (contexture-point--commit "HEAD~1"))))

(ert-deftest contexture-point-annotated-line ()
  (contexture-point-test-with
   (contexture-test-visiting (expand-file-name "a.el")
     (vc-annotate (buffer-file-name) "HEAD" nil nil 2 'Git)
     (with-current-buffer (contexture-point-tests--process-buffer
                           (cl-find-if (lambda (it) (string-prefix-p "*Annotate a.el" (buffer-name it)))
                                       (buffer-list)))
       (llm-ert-wait-for (string-match-p "(one)" (buffer-string)))
       (goto-char (point-min))
       (search-forward "(one)")
       (contexture-point-test-check "(Call one)" "\\+  (one)")))))

;;;; Lists of places

(ert-deftest contexture-point-places-of-lists ()
  (contexture-point-test-with
   (contexture-test-visiting (expand-file-name "a.el")
     (emacs-lisp-mode)
     (let ((code (current-buffer)) (transient-mark-mode t))
       ;; occur
       (occur "(one)\\|  3")
       (with-current-buffer "*Occur*"
         (goto-char (point-min))
         (search-forward "  (one)")
         (contexture-point-test-check '("a\\.el:6-8" . "(defun two") "\\`(defun two ()")
         (push-mark (point-min) t t)
         (goto-char (point-max))
         (contexture-point-test-check '("a\\.el" . "(defun two") "(defun two" "(defun three")
         (deactivate-mark))
       ;; xref
       (with-current-buffer code
         (let ((items (list (xref-make "  (one)" (xref-make-file-location (buffer-file-name) 7 0)))))
           (xref--show-xref-buffer (lambda () items) (list (cons 'window nil)))))
       (with-current-buffer "*xref*"
         (goto-char (point-min))
         (search-forward "(one)")
         (contexture-point-test-check '("a\\.el:6-8" . "(defun two") "\\`(defun two ()"))
       ;; grep
       (with-temp-buffer
         (setq default-directory llm-ert-directory)
         (insert "-*- mode: grep -*-\n\na.el:7:  (one)\na.el:11:  3)\n")
         (grep-mode)
         (goto-char (point-min))
         (search-forward "(one)")
         (contexture-point-test-check '("a\\.el:6-8" . "(defun two") "\\`(defun two ()")
         (push-mark (point-min) t t)
         (goto-char (point-max))
         (contexture-point-test-check '("a\\.el" . "(defun two") "(defun two" "(defun three")
         (deactivate-mark))
       ;; compile
       (with-temp-buffer
         (setq default-directory llm-ert-directory)
         (insert "make\na.el:7:3: error: one is not there\n")
         (compilation-mode)
         (goto-char (point-min))
         (search-forward "error")
         (contexture-point-test-check '("the error at a\\.el" . "(defun two") "one is not there" "\\`(defun two ()"))
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
           (contexture-point-test-check '("the diagnostics of a\\.el:7" . "(defun two") "one is odd" "\\`(defun two ()")
           (kill-buffer))
         (flymake-mode -1))))))

;;;; Lists of files, buffers and other things

(ert-deftest contexture-point-files-of-lists ()
  (contexture-point-test-with
   (contexture-test-file "b.el" "(defun b ()" "  4)")
   (let ((all (mapconcat #'regexp-quote `(";; above" ,@contexture-point-test-code ";; end") "\n")))
     (with-current-buffer (dired-noselect default-directory)
       (dired-goto-file (expand-file-name "a.el"))
       (contexture-point-test-check '("a\\.el" . "(defun three") all)
       (let ((inhibit-read-only t)) (dired-mark 1))
       (dired-goto-file (expand-file-name "b.el"))
       (let ((inhibit-read-only t)) (dired-mark 1))
       (contexture-point-test-check '("a\\.el" . "(defun three") all "(defun b")
       (dired-unmark-all-marks)
       (dired-goto-file (expand-file-name "b.el"))
       (wdired-change-to-wdired-mode)
       (contexture-point-test-check '("b\\.el" . "(defun b") "\\`(defun b ()\n  4)\n\\'")
       (set-buffer-modified-p nil)
       (kill-buffer))
     (vc-dir default-directory 'Git)
     (llm-ert-wait-for (not (vc-dir-busy)))
     (goto-char (point-min))
     (search-forward "a.el")
     (contexture-point-test-check '("a\\.el" . "(defun three") all)
     (kill-buffer))))

(ert-deftest contexture-point-buffers-of-lists ()
  (contexture-point-test-with
   (let ((buffers (list (get-buffer-create "one") (get-buffer-create "two"))))
     (dolist (buffer buffers)
       (with-current-buffer buffer (erase-buffer) (insert "text of " (buffer-name))))
     (ibuffer nil "*contexture-point ibuffer*")
     (goto-char (point-min))
     (search-forward " one ")
     (contexture-point-test-check '("\\`one\\'" . "text of one") "text of one")
     (ibuffer-mark-by-name-regexp "\\`\\(?:one\\|two\\)\\'")
     (contexture-point-test-check '("one" . "text of") "text of" "text of")
     (kill-buffer)
     (list-buffers)
     (with-current-buffer "*Buffer List*"
       (goto-char (point-min))
       (re-search-forward "^[ .%]*\\*? *two +[0-9]+ ")
       (contexture-point-test-check '("\\`two\\'" . "text of two") "text of two")
       (kill-buffer))
     (mapc #'kill-buffer buffers))))

(ert-deftest contexture-point-pictures-and-pdfs ()
  (contexture-point-test-with
   (let ((png (concat "\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\2\200\0\0\1\340\10\2\0\0\0\0\0\0\0"))
         (coding-system-for-write 'no-conversion))
     (with-temp-file "shot.png" (set-buffer-multibyte nil) (insert png))
     (dolist (show (list (lambda ()
                           (let ((buffer (generate-new-buffer "shot")))
                             (set-buffer buffer)
                             (setq buffer-file-name (expand-file-name "shot.png")
                                   major-mode 'image-mode)))
                         (lambda ()
                           (set-buffer (dired-noselect default-directory))
                           (revert-buffer)
                           (dired-goto-file (expand-file-name "shot.png")))))
       (save-current-buffer
         (funcall show)
         (should (string-match-p "\\`shot\\.png: png picture, 640 × 480"
                                 (plist-get (car (contexture-point-test-added)) :content)))
         (dolist (command (list #'contexture-explain-code #'contexture-review-code))
           (pcase-let ((`(,shown . ,sent) (contexture-point-test-asked command)))
             (should (string-match-p "^@.*shot\\.png$" shown))
             (should (string-search (base64-encode-string png t) sent))))
         (contexture-test-user-error "names no existing file" (contexture-fix-error "It breaks"))
         (let ((kill-buffer-query-functions nil)) (set-buffer-modified-p nil) (kill-buffer)))))))

(ert-deftest contexture-point-member-of-an-archive ()
  (skip-unless (executable-find "tar"))
  (contexture-point-test-with
   (contexture-test-file "inside.el" ";; -*- mode: shell-script; eval: (error \"run\") -*-" "(defun in ())")
   (should (equal 0 (call-process "tar" nil nil nil "cf" "x.tar" "inside.el" "a.el")))
   (with-current-buffer (find-file-noselect "x.tar")
     (should (derived-mode-p 'tar-mode))
     (goto-char (point-min))
     (search-forward "inside.el")
     (contexture-point-test-check "\\`inside\\.el in x\\.tar\\'" "(defun in ())")
     (should-not (get-buffer "inside.el (x.tar)"))
     (kill-buffer))))

(ert-deftest contexture-point-rows-of-lists ()
  (contexture-point-test-with
   (skip-unless (require 'package nil t))
   (let ((package-archives nil) (package-user-dir (concat llm-ert-directory "elpa")))
     (list-packages t)
     (with-current-buffer "*Packages*"
       (goto-char (point-min))
       (re-search-forward "^  calendar\\|^  seq ")
       (contexture-point-test-check "\\`the package " "\\`[a-z]+-[0-9.]+ (built-in): ")
       (kill-buffer)))
   (let ((process (start-process "contexture-point sleep" nil "sleep" "60")))
     (unwind-protect
         (progn
           (list-processes)
           (with-current-buffer "*Process List*"
             (goto-char (point-min))
             (search-forward "contexture-point sleep")
             (contexture-point-test-check "Process List" "\\`Process .*\ncontexture-point")
             (kill-buffer)))
       (delete-process process)))
   (proced)
   (with-current-buffer "*Proced*"
     (goto-char (point-min))
     (search-forward "emacs")
     (contexture-point-test-check "Proced" "PID.*\n.*emacs")
     (proced-mark 1)
     (goto-char (point-min))
     (contexture-point-test-check "Proced" "PID.*\n\\*.*emacs")
     (kill-buffer))))

(ert-deftest contexture-point-option-of-customization ()
  (contexture-point-test-with
   (customize-option 'fill-column)
   (goto-char (point-min))
   (search-forward "Fill Column")
   (contexture-point-test-check "\\`the customization of fill-column\\'" "Fill Column: \\(?:Integer: \\)?70")
   (kill-buffer)))

(ert-deftest contexture-point-day-of-the-calendar ()
  (contexture-point-test-with
   (let ((diary-file (contexture-test-file "diary" "Dec 25, 2026 Bake a cake")))
     (calendar)
     (with-current-buffer "*Calendar*"
       (calendar-goto-date '(12 25 2026))
       (contexture-point-test-check
        "\\`Friday, December 25, 2026\\'"
        "\\`Friday, December 25, 2026\n\\(?:.*\n\\)*Christmas\n\\(?:.*\n\\)*.*Bake a cake")
       (kill-buffer)))))

(ert-deftest contexture-point-from-the-minibuffer-means-the-buffer-before ()
  (contexture-point-test-with
   (contexture-test-visiting (expand-file-name "a.el")
     (emacs-lisp-mode)
     (goto-char (point-min))
     (search-forward "(one)")
     (switch-to-buffer (current-buffer))
     (let ((window (selected-window)) found)
       (cl-letf (((symbol-function 'minibufferp) (lambda (&rest _) (equal (buffer-name) "mini")))
                 ((symbol-function 'minibuffer-selected-window) (lambda () window)))
         (with-current-buffer (get-buffer-create "mini")
           (contexture-point-call (lambda () (setq found (buffer-name))))))
       (should (equal found "a.el"))
       (kill-buffer "mini")))))

;;;; Pages, tables and terminals

(ert-deftest contexture-point-table-of-org ()
  (contexture-point-test-with
   (contexture-test-visiting (contexture-test-file "n.org" "* A" "| x | y |" "| 1 | 2 |" "" "text")
     (goto-char (point-min))
     (search-forward "1 |")
     (contexture-point-test-check '("n\\.org:2-3" . "| 1 | 2 |") "\\`| x | y |\n| 1 | 2 |\n\\'")
     (goto-char (point-max))
     (should-not (contexture-point-subjects)))))

(ert-deftest contexture-point-parts-of-texts ()
  (contexture-point-test-with
   (pcase-dolist (`(,name ,mode ,lines ,at ,source ,regexp)
                  '(("s.org" org-mode ("* A" "text a" "** B" "text b" "* C") "text b" "s\\.org:3-4"
                     "\\`\\*\\* B\ntext b\n\\'")
                    ("b.org" org-mode ("* A" "#+begin_src elisp" "(car x)" "#+end_src" "more") "car"
                     "b\\.org:2-4" "\\`#\\+begin_src elisp\n(car x)\n#\\+end_src\n\\'")
                    ("m.md" text-mode ("# A" "text" "## B" "text b" "# C") "text b" "m\\.md:3-4"
                     "\\`## B\ntext b\n\\'")
                    ("r.rst" rst-mode ("Alpha" "=====" "" "text a" "" "Beta" "====" "" "text b") "text b"
                     "r\\.rst:6-9" "\\`Beta\n====\n\ntext b\n\\'")))
     (contexture-test-visiting (apply #'contexture-test-file name lines)
       (funcall mode)
       (goto-char (point-min))
       (search-forward at)
       (contexture-point-test-check (cons source (regexp-quote at)) regexp)))
   (with-current-buffer (get-buffer-create "*scratch*")
     (lisp-interaction-mode)
     (erase-buffer)
     (insert ";; notes\n\n(defun scratched ()\n  5)\n")
     (search-backward "5")
     (contexture-point-test-check '("scratch" . "(defun scratched ()\n  5)")
                                    "\\`(defun scratched ()\n  5)\n?\\'"))))

(ert-deftest contexture-point-pages-have-their-names ()
  (contexture-point-test-with
   (let ((help-window-select nil))
     (describe-function 'car)
     (with-current-buffer "*Help*"
       (contexture-point-test-check "\\`Help on car\\'" "car"))
     (with-temp-buffer
       (insert "File: x\n\nSome text\n")
       (Info-mode)
       (setq Info-current-file "/usr/share/info/emacs" Info-current-node "Buffers")
       (contexture-point-test-check "\\`(emacs)Buffers\\'" "Some text"))
     (with-temp-buffer
       (insert "LS(1)\n")
       (Man-mode)
       (setq-local Man-arguments "ls")
       (contexture-point-test-check "\\`man ls\\'" "LS(1)"))
     (with-temp-buffer
       (insert "A page\n")
       (let ((inhibit-read-only t)) (eww-mode))
       (setq eww-data (list :title "Title" :url "http://127.0.0.1/x"))
       (contexture-point-test-check "\\`Title <http://127.0.0.1/x>\\'" "A page"))
     (with-temp-buffer
       (rename-buffer "*CPU-Profiler-Report 2026*")
       (insert " 100% + command-execute\n")
       (setq major-mode 'profiler-report-mode)
       (contexture-point-test-check "\\`CPU-Profiler-Report 2026\\'" "command-execute")))))

(ert-deftest contexture-point-last-command-of-a-terminal ()
  (contexture-point-test-with
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
       (contexture-point-test-check "contexture-point shell"
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
       (contexture-point-test-check "contexture-point eshell" "\\`.*echo second\nsecond\n\\'")
       (kill-buffer)))
   (let ((process-environment (append '("PS1=there$ " "ENV=") process-environment)))
     (with-current-buffer (ansi-term "/bin/sh" "contexture-point term")
       (llm-ert-wait-for (string-match-p "there\\$ " (buffer-string)))
       (dolist (command '("echo first" "echo second"))
         (term-send-raw-string (concat command "\n"))
         (llm-ert-wait-for
           (string-match-p (concat (substring command 5) "\nthere\\$ ") (buffer-string))))
       (contexture-point-test-check "contexture-point term" "\\`there\\$ echo second\nsecond\n\\'")
       (set-process-query-on-exit-flag (get-buffer-process (current-buffer)) nil)
       (kill-buffer)))
   (with-current-buffer (make-comint "contexture-point comint" "cat")
     (goto-char (point-max))
     (insert "said")
     (comint-send-input)
     (llm-ert-wait-for (string-match-p "said\n.*said" (buffer-string)))
     (contexture-point-test-check "contexture-point comint" "\\`said\nsaid\n\\'")
     (set-process-query-on-exit-flag (get-buffer-process (current-buffer)) nil)
     (kill-buffer))
   (with-temp-buffer
     (insert "u@h:~$ echo a\na\nu@h:~$ make all\ncc x\ndone\nu@h:~$ ")
     (setq major-mode 'vterm-mode)
     (contexture-point-test-check "" "\\`u@h:~\\$ make all\ncc x\ndone\n\\'"))))

;;;; Questions

(ert-deftest contexture-point-questions-about-what-is-meant ()
  (contexture-point-test-with
   (with-temp-buffer
     (setq default-directory llm-ert-directory)
     (call-process "git" nil t nil "diff" "-U0")
     (diff-mode)
     (goto-char (point-min))
     (search-forward "+;; end")
     (let ((hunk (car (contexture-point-test-texts))) asked)
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

(ert-deftest contexture-remark-reads-no-more-than-a-person-does ()
  (let ((lines (mapcar (lambda (line) (format "%d: bad" line)) (number-sequence 1 5000))))
    (should (= contexture-remark--most
               (length (contexture-remark--read (mapconcat #'identity lines "\n"))))))
  (should (equal '((nil 1 "bad"))
                 (contexture-remark--read (concat "1: bad\n2: " (make-string 300000 ?x))))))

(ert-deftest contexture-remark-is-shown-at-its-line ()
  (contexture-point-test-with
   (contexture-test-visiting (expand-file-name "a.el")
     (let ((contexture-remark--all nil)
           (code (current-buffer))
           (subject (list :place (cons (buffer-file-name) 7)
                          :params (contexture-sources--params
                                   :text :diff "@@ -1,1 +7,2 @@\n (defun two ()\n+  (one)\n" '(:language "diff")))))
       (should (equal (contexture-point-numbered (plist-get subject :params))
                      "@@ -1,1 +7,2 @@\n    7  (defun two ()\n    8 +  (one)"))
       (contexture-test-message
           "^2 remarks at their lines.*; 2 remarks about other files or lines only in the answer"
         (contexture-remark--watch
          (contexture-remark--places (list subject))
          "Two things.\n\na.el:8: calls\u202e one\n/etc/passwd:1: no\na.el:99: no\n4: a gap" 'done))
       (should (equal (mapcar (lambda (it) (with-current-buffer (overlay-buffer it)
                                             (line-number-at-pos (overlay-start it))))
                              contexture-remark--all)
                      '(8 4)))
       (should-not (string-search "\u202e" (overlay-get (car contexture-remark--all) 'after-string)))
       (goto-char (point-min))
       (dolist (line '(8 4))
         (save-window-excursion (save-current-buffer (next-error)))
         (should (equal (line-number-at-pos) line)))
       (should-error (next-error) :type 'user-error)
       (goto-char (point-min))
       (contexture-remark-next)
       (should (equal (line-number-at-pos) 4))
       (contexture-remark-dismiss)
       (contexture-test-user-error "No remark" (contexture-remark-dismiss))
       (contexture-remark-next)
       (should (equal (line-number-at-pos) 8))
       (should (eq (key-binding (kbd "C-c C-c")) #'contexture-remark-apply))
       (let (asked)
         (cl-letf (((symbol-function 'contexture-rewrite)
                    (lambda (it) (setq asked (cons it (contexture-conversation-code--bounds))))))
           (contexture-remark-apply)
           (should (string-prefix-p "A review says of line 8: calls" (car asked)))
           ;; Where no definition is, the lines around it are rewritten.
           (goto-char (point-min))
           (contexture-remark--show (current-buffer) 1 "odd")
           (contexture-remark-apply)
           (should (equal (car asked) "A review says of line 1: odd"))
           (should (equal (cadr asked) (point-min)))
           (should-not (region-active-p))))
       (should-not contexture-remark--all)
       (contexture-test-message "^1 remark about other files or lines only in the answer"
         (contexture-remark--watch (contexture-remark--places (list subject))
                                   "b.el:1: elsewhere" 'done))
       (should-not contexture-remark--all)
       (should (eq code (current-buffer)))))))

(provide 'contexture-point-tests)
;;; contexture-point-tests.el ends here
